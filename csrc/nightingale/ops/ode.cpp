#include "nightingale/ops/ode.h"

#include "mlx/transforms.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ode.h"
#include "nightingale/ops/graph/ops.h"

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
  if (gpu::takes_euler_step(state, s)) {
    return gpu::euler_step(state, velocity, guidance, dt, s);
  }
  auto x = graph::euler_step(state.x, velocity, guidance, dt, s);
  return {x, graph::write_columns(state.input, x, s)};
}

mx::array solution(const OdeState& state) {
  if (state.written) {
    mx::eval(*state.written); // MLX's ops do not see writes in place
  }
  return state.x;
}

} // namespace nightingale::ops
