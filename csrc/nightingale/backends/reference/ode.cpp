#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array euler_step(
    const mx::array& x,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s) {
  auto v = velocity;
  if (velocity.shape(0) == 2) {
    auto rows = mx::split(velocity, 2, 0, s);
    v = mx::subtract(
        mx::multiply(rows[0], mx::array(1 + guidance), s),
        mx::multiply(rows[1], mx::array(guidance), s),
        s);
  }
  return mx::add(x, mx::multiply(v, mx::array(dt), s), s);
}

mx::array
write_columns(const mx::array& buffer, const mx::array& x, mx::Stream s) {
  mx::Shape stop = buffer.shape();
  stop[2] = x.shape(2);
  auto rows = mx::astype(mx::broadcast_to(x, stop, s), buffer.dtype(), s);
  return mx::slice_update(buffer, rows, {0, 0, 0}, stop, s);
}

} // namespace nightingale::reference
