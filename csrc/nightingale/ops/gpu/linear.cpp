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

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& w,
    mx::Stream s) {
  return linear(rms_norm(x, norm, eps, s), w, std::nullopt, std::nullopt, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& gate_up,
    mx::Stream s) {
  return swiglu(norm_linear(x, norm, eps, gate_up, s), s);
}

} // namespace nightingale::gpu
