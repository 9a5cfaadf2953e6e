#include "nightingale/ops/convolution.h"

#include "mlx/ops.h"

namespace nightingale::ops {

Kernel Kernel::quantized(const mx::array& w, int bits, mx::Stream s) {
  auto rows = mx::reshape(w, {w.shape(0), w.shape(1) * w.shape(2)}, s);
  return {Matrix::quantized(rows, bits, s), w.shape(1)};
}

Kernel Kernel::channels_of(int begin, int count) const {
  return {matrix.columns_of(begin, count, taps), taps};
}

Matrix Kernel::one_tap() const {
  return is_quantized()
      ? matrix
      : Matrix(computed(mx::squeeze(matrix.w, 1, mx::Device::cpu)));
}

} // namespace nightingale::ops
