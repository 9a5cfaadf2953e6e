#include "nightingale/ops/ode.h"

#include "mlx/transforms.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ode.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

OdeState euler_step(
    const OdeState& state,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s) {
  if (on_cpu(s)) {
    auto x = cpu::euler_step(state.x, velocity, guidance, dt, s);
    return {x, cpu::write_columns(state.input, x, s)};
  }
  if (gpu::can_use_euler_step(state, s)) {
    return gpu::euler_step(state, velocity, guidance, dt, s);
  }
  auto x = reference::euler_step(state.x, velocity, guidance, dt, s);
  return {x, reference::write_columns(state.input, x, s)};
}

mx::array solution(const OdeState& state) {
  if (state.written) {
    mx::eval(*state.written); // MLX's ops do not see writes in place
  }
  return state.x;
}

} // namespace nightingale::ops
