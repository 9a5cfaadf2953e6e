#include "nightingale/ops/norm.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/norm.h"
#include "nightingale/backends/gpu/tile_linear.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/linear.h"

namespace nightingale::ops {

mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s) {
  return on_cpu(s) ? cpu::rms_norm(x, w, eps, s)
                   : reference::rms_norm(x, w, eps, s);
}

mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Dtype dtype,
    mx::Stream s) {
  return on_cpu(s) ? cpu::layer_norm(x, w, b, eps, dtype, s)
                   : reference::layer_norm(x, w, b, eps, dtype, s);
}

mx::array norm_mish(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_mish(x, w, b, eps, shift, dtype, s)
                   : reference::norm_mish(x, w, b, eps, shift, dtype, s);
}

Normed linear_add_norm(
    const mx::array& x,
    const Matrix& w,
    const mx::array& bias,
    const mx::array& residual,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  if (!on_cpu(s) && gpu::can_use_norm_tiles(x, w, s)) {
    return gpu::tile_linear_norm(x, w, bias, residual, norm, dtype, s);
  }
  if (!on_cpu(s) && gpu::has_row_kernels(w.rows(), s)) {
    return gpu::add_norm(linear(x, w, s), bias, residual, norm, dtype, s);
  }
  auto sum = linear(x, w, {.bias = bias, .residual = residual}, s);
  return {sum, layer_norm(sum, norm, dtype, s)};
}

} // namespace nightingale::ops
