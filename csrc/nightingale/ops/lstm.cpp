#include "nightingale/ops/lstm.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array lstm(const mx::array& x, const LstmWeights& weights, mx::Stream s) {
  return on_cpu(s) ? cpu::lstm(x, weights, s) : gpu::lstm(x, weights, s);
}

} // namespace nightingale::ops
