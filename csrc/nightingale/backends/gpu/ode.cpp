#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"

namespace nightingale::gpu {

ops::OdeState euler_step(
    const ops::OdeState& state,
    const mx::array& velocity,
    ops::EulerStep step,
    mx::Stream s) {
  if (!has_kernels(s) || !is_device_array(state.x)) {
    return reference::euler_step(state, velocity, step, s);
  }
  auto written = launch_one(
      {.kernel = "euler_step",
       .inputs =
           {velocity,
            numbers({step.dt, 1 + step.guidance, step.guidance}),
            state.written.value_or(velocity)},
       .state = {state.x, state.input},
       .outputs = {{{1}, mx::float32}},
       .constants =
           {{"I", state.input.dtype()},
            {"C", state.x.shape(2)},
            {"WIDTH", state.input.shape(2)},
            {"BATCH", velocity.shape(0)}},
       .groups = {state.x.shape(1), 1, 1},
       .threads = {96, 64, 32}},
      s);
  return {state.x, state.input, written};
}

} // namespace nightingale::gpu
