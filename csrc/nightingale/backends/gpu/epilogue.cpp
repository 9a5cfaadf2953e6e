#include "nightingale/backends/gpu/epilogue.h"

#include "mlx/ops.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::gpu {

namespace {

bool is_empty(const ops::Epilogue& epilogue) {
  return !epilogue.bias && epilogue.activation == ops::Activation::none &&
      !epilogue.snake && !epilogue.residual;
}

// One launch. `before` stands before the epilogue's residual, and the sum takes
// them in from element `shift` on.
mx::array launch_epilogue(
    const mx::array& y,
    const mx::Shape& shape,
    mx::Dtype dtype,
    const ops::Epilogue& epilogue,
    const std::optional<mx::array>& before,
    int shift,
    mx::Stream s) {
  int size = y.size(), columns = y.shape(-1);
  bool shifted = before || shift > 0;
  int parts = (epilogue.bias ? 1 : 0) | (epilogue.snake ? 2 : 0) |
      (epilogue.residual ? 4 : 0) | (shifted ? 8 : 0);
  auto extent = pair(columns | parts << 24, size);
  return launch_one(
      {.kernel = "epilogue",
       .inputs =
           {y,
            epilogue.bias.value_or(y),
            epilogue.snake.value_or(y),
            epilogue.residual.value_or(y),
            before.value_or(y),
            extent,
            shifted ? pair(shift, before ? before->size() : 0) : extent},
       .outputs = {{shape, dtype}},
       .constants =
           {{"ACTIVATION", static_cast<int>(epilogue.activation)},
            {"WIDTH", width_of(columns)}},
       .groups = {chunks_of(size), 1, 1},
       .threads = kChunkThreads},
      s);
}

// Whether the kernel finds the residual of a result of this shape: it counts
// elements, and does not broadcast.
bool reads_residual(
    const ops::FrameSpan& residual,
    const mx::Shape& shape,
    int begin) {
  const auto& x = residual.x;
  bool one_row = x.shape(0) == 1 && shape[0] == 1 && x.shape(2) == shape[2] &&
      begin + shape[1] <= residual.count();
  return one_row || (!residual.before && begin == 0 && x.shape() == shape);
}

} // namespace

mx::array apply_epilogue(
    mx::array y,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  if (is_empty(epilogue)) {
    return mx::astype(y, epilogue.result_dtype(x), s);
  }
  bool broadcast = epilogue.residual && epilogue.residual->size() != y.size();
  if (!has_kernels(s) || !is_device_array(y) || broadcast) {
    return reference::apply_epilogue(y, x, epilogue, s);
  }
  auto dtype = epilogue.result_dtype(x);
  return launch_epilogue(y, y.shape(), dtype, epilogue, std::nullopt, 0, s);
}

mx::array apply_epilogue(
    const mx::array& y,
    const mx::Shape& shape,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    const std::optional<ops::FrameSpan>& residual,
    int begin,
    mx::Stream s) {
  if (!is_device_array(y) || (is_empty(epilogue) && !residual) ||
      (residual && !reads_residual(*residual, shape, begin))) {
    ops::Epilogue plain = epilogue;
    if (residual) {
      auto rows = ops::to_array(*residual, s);
      plain.residual = ops::slice_frames(rows, begin, begin + shape[1], s);
    }
    return apply_epilogue(mx::reshape(y, shape, s), x, plain, s);
  }
  ops::Epilogue sum = epilogue;
  std::optional<mx::array> before;
  if (residual) {
    auto rows = readable(*residual, s);
    before = rows.before;
    sum.residual = rows.x;
  }
  auto dtype = sum.result_dtype(x);
  return launch_epilogue(y, shape, dtype, sum, before, begin * y.shape(-1), s);
}

} // namespace nightingale::gpu
