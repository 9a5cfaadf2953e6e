#include "mlx/ops.h"
#include "nightingale/ops/gpu/epilogue.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::gpu {

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  auto padded = x;
  if (shape.pad_left || shape.pad_right) {
    padded = mx::pad(
        x,
        {{0, 0}, {shape.pad_left, shape.pad_right}, {0, 0}},
        mx::array(0.0f, x.dtype()),
        "constant",
        s);
  }
  auto y =
      mx::conv1d(padded, w, shape.stride, 0, shape.dilation, shape.groups, s);
  return finish(y, x, epilogue, s);
}

mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  auto whole = mx::conv_transpose1d(x, w, shape.stride, 0, 1, 0, 1, s);
  auto kept = mx::slice(
      whole,
      {0, shape.trim_left, 0},
      {whole.shape(0), whole.shape(1) - shape.trim_right, whole.shape(2)},
      s);
  return mx::add(kept, bias, s);
}

} // namespace nightingale::gpu
