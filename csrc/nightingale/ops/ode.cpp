#include "nightingale/ops/ode.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array euler_step(
    const mx::array& x,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s) {
  return on_cpu(s) ? cpu::euler_step(x, velocity, guidance, dt, s)
                   : gpu::euler_step(x, velocity, guidance, dt, s);
}

mx::array
write_columns(const mx::array& buffer, const mx::array& x, mx::Stream s) {
  return on_cpu(s) ? cpu::write_columns(buffer, x, s)
                   : gpu::write_columns(buffer, x, s);
}

} // namespace nightingale::ops
