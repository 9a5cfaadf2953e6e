#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

ops::OdeState euler_step(
    const ops::OdeState& state,
    const mx::array& velocity,
    ops::EulerStep step,
    mx::Stream s) {
  auto v = velocity;
  if (velocity.shape(0) == 2) {
    auto rows = mx::split(velocity, 2, 0, s);
    v = mx::subtract(
        mx::multiply(rows[0], mx::array(1 + step.guidance), s),
        mx::multiply(rows[1], mx::array(step.guidance), s),
        s);
  }
  auto x = mx::add(state.x, mx::multiply(v, mx::array(step.dt), s), s);
  mx::Shape stop = state.input.shape();
  stop[2] = x.shape(2);
  auto columns =
      mx::astype(mx::broadcast_to(x, stop, s), state.input.dtype(), s);
  return {x, mx::slice_update(state.input, columns, {0, 0, 0}, stop, s)};
}

} // namespace nightingale::reference
