#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array conv1d(
    const mx::array& x,
    const ops::Kernel& w,
    const ops::ConvOptions& options,
    mx::Stream s) {
  const auto& shape = options.shape;
  auto padded = x;
  if (shape.pad_left || shape.pad_right) {
    padded = mx::pad(
        x,
        {{0, 0}, {shape.pad_left, shape.pad_right}, {0, 0}},
        mx::array(0.0f, x.dtype()),
        "constant",
        s);
  }
  auto y = mx::conv1d(
      padded, w.matrix.w, shape.stride, 0, shape.dilation, shape.groups, s);
  return apply_epilogue(y, x, options.epilogue, s);
}

// The products with all taps, added up where they overlap: MLX's own transposed
// convolution gives wrong results on CUDA for some shapes (0.32.4).
mx::array conv_transpose1d(
    const mx::array& x,
    const ops::TransposedFilters& weights,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  const auto& [w, bias] = weights;
  int batch = x.shape(0), rows = x.shape(1);
  int filters = w.shape(0), taps = w.shape(1), stride = shape.stride;
  int runs = (taps + stride - 1) / stride; // of `stride` taps each
  mx::array zero(0.0f, x.dtype());
  auto kernel = mx::pad(
      mx::transpose(w, {1, 0, 2}, s),
      {{0, runs * stride - taps}, {0, 0}, {0, 0}},
      zero,
      "constant",
      s);
  kernel = mx::reshape(kernel, {runs * stride * filters, w.shape(2)}, s);
  auto products = mx::reshape(
      mx::matmul(x, mx::transpose(kernel, s), s),
      {batch, rows, runs, stride * filters},
      s);
  auto sum = bias;
  for (int run = 0; run < runs; ++run) {
    auto part = mx::slice(
        products, {0, 0, run, 0}, {batch, rows, run + 1, stride * filters}, s);
    part = mx::pad(
        mx::squeeze(part, 2, s),
        {{0, 0}, {run, runs - 1 - run}, {0, 0}},
        zero,
        "constant",
        s);
    part = mx::reshape(part, {batch, -1, filters}, s);
    sum = mx::add(sum, part, s);
  }
  int end = (rows - 1) * stride + taps - shape.trim_right;
  return mx::slice(sum, {0, shape.trim_left, 0}, {batch, end, filters}, s);
}

} // namespace nightingale::reference
