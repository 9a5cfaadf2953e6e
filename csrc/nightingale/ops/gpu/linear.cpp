#include "mlx/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::gpu {

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    const std::optional<mx::array>& residual,
    mx::Stream s) {
  auto y = mx::matmul(x, mx::transpose(w, s), s);
  if (bias) {
    y = mx::add(y, *bias, s);
  }
  return residual ? mx::add(*residual, y, s) : y;
}

} // namespace nightingale::gpu
