#include "nightingale/models/s3gen/quantization.h"

namespace nightingale {

int s3gen_bits(const TensorFile& file, int bits, mx::Stream s) {
  bool wanted = bits > 0 || file.fewest_bits() > 0;
  return wanted && ops::on_cpu(s) ? 8 : 0;
}

} // namespace nightingale
