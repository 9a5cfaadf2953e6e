#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array rms_norm(const mx::array& x, const ops::RmsNorm& norm, mx::Stream s) {
  return mx::fast::rms_norm(x, norm.w, norm.eps, s);
}

mx::array layer_norm(
    const mx::array& x,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  auto y = mx::fast::layer_norm(x, norm.w, norm.b, norm.eps, s);
  return mx::astype(y, dtype, s);
}

mx::array apply_norm(const mx::array& x, const ops::Norm& norm, mx::Stream s) {
  return norm.b
      ? reference::layer_norm(x, {norm.w, *norm.b, norm.eps}, x.dtype(), s)
      : reference::rms_norm(x, {norm.w, norm.eps}, s);
}

mx::array norm_mish(
    const mx::array& x,
    const ops::LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  auto y = mx::fast::layer_norm(x, norm.w, norm.b, norm.eps, s);
  y = reference::activate(y, ops::Activation::mish, s);
  return mx::astype(shift ? mx::add(y, *shift, s) : y, dtype, s);
}

} // namespace nightingale::reference
