#include "mlx/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::gpu {

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    mx::Stream s) {
  auto padded = mx::pad(
      x,
      {{0, 0}, {shape.pad_left, shape.pad_right}, {0, 0}},
      mx::array(0.0f, x.dtype()),
      "constant",
      s);
  return mx::conv1d(
      padded, w, shape.stride, 0, shape.dilation, shape.groups, s);
}

} // namespace nightingale::gpu
