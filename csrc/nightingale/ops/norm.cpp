#include "nightingale/ops/norm.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array rms_norm(const mx::array& x, const RmsNorm& norm, mx::Stream s) {
  return on_cpu(s) ? cpu::rms_norm(x, norm, s) : gpu::rms_norm(x, norm, s);
}

mx::array layer_norm(
    const mx::array& x,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  return on_cpu(s) ? cpu::layer_norm(x, norm, dtype, s)
                   : gpu::layer_norm(x, norm, dtype, s);
}

mx::array norm_mish(
    const mx::array& x,
    const LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_mish(x, norm, shift, dtype, s)
                   : gpu::norm_mish(x, norm, shift, dtype, s);
}

Normed linear_add_norm(
    const mx::array& x,
    const Matrix& w,
    const AddNorm& add,
    mx::Stream s) {
  return on_cpu(s) ? cpu::linear_add_norm(x, w, add, s)
                   : gpu::linear_add_norm(x, w, add, s);
}

} // namespace nightingale::ops
