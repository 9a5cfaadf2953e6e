#include "nightingale/ops/norm.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s) {
  return on_cpu(s) ? cpu::rms_norm(x, w, eps, s) : gpu::rms_norm(x, w, eps, s);
}

mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Dtype dtype,
    mx::Stream s) {
  return on_cpu(s) ? cpu::layer_norm(x, w, b, eps, dtype, s)
                   : gpu::layer_norm(x, w, b, eps, dtype, s);
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
                   : gpu::norm_mish(x, w, b, eps, shift, dtype, s);
}

} // namespace nightingale::ops
