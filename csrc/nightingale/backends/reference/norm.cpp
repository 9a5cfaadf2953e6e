#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s) {
  return mx::fast::rms_norm(x, w, eps, s);
}

mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Dtype dtype,
    mx::Stream s) {
  return mx::astype(mx::fast::layer_norm(x, w, b, eps, s), dtype, s);
}

mx::array norm_mish(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  auto y = mx::fast::layer_norm(x, w, b, eps, s);
  y = reference::activate(y, ops::Activation::mish, s);
  return mx::astype(shift ? mx::add(y, *shift, s) : y, dtype, s);
}

} // namespace nightingale::reference
