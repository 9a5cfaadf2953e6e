#include "nightingale/ops/ode.h"

#include "mlx/transforms.h"
#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

OdeState euler_step(
    const OdeState& state,
    const mx::array& velocity,
    EulerStep step,
    mx::Stream s) {
  return on_cpu(s) ? cpu::euler_step(state, velocity, step, s)
                   : gpu::euler_step(state, velocity, step, s);
}

mx::array solution(const OdeState& state) {
  if (state.written) {
    mx::eval(*state.written); // MLX's ops do not see writes in place
  }
  return state.x;
}

} // namespace nightingale::ops
