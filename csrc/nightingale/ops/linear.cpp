#include "nightingale/ops/linear.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    const std::optional<mx::array>& residual,
    mx::Stream s) {
  return on_cpu(s) ? cpu::linear(x, w, bias, residual, s)
                   : gpu::linear(x, w, bias, residual, s);
}

} // namespace nightingale::ops
