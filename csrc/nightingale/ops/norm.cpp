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
    mx::Stream s) {
  return on_cpu(s) ? cpu::layer_norm(x, w, b, eps, s)
                   : gpu::layer_norm(x, w, b, eps, s);
}

} // namespace nightingale::ops
