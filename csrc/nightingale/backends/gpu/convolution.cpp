#include "nightingale/backends/gpu/convolution.h"

#include <algorithm>

#include "mlx/ops.h"
#include "nightingale/backends/gpu/epilogue.h"
#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/gpu/tile_conv.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::gpu {

namespace {

constexpr int kSnaked = 1 << 15; // beside the channels

// What unfold.metal takes.
struct Windows {
  int stride, dilation, taps, pad;
  int results; // of each batch row

  static Windows of(const ops::Conv1d& shape, int taps, int results) {
    return {shape.stride, shape.dilation, taps, shape.pad_left, results};
  }
  // Rows that the windows reach over.
  int reach() const {
    return (results - 1) * stride + (taps - 1) * dilation + 1;
  }
  // Those of results [begin, end).
  Windows part(int begin, int end) const {
    return {stride, dilation, taps, pad - begin * stride, end - begin};
  }
};

// Whether the kernel's numbers hold it.
bool fits(const ops::Conv1d& shape, const mx::array& w) {
  return shape.groups == 1 && shape.stride < 1024 && shape.dilation < 1024 &&
      w.shape(1) < 2048 && w.shape(2) < kSnaked;
}

// [B * results, taps * C], and the last `keep` rows of x.
ops::StreamOutput unfold(
    const ops::FrameSpan& x,
    const Windows& windows,
    const std::optional<mx::array>& snake,
    int keep,
    mx::Stream s) {
  const auto& fresh = x.x;
  int batch = fresh.shape(0), channels = fresh.shape(2);
  int split = x.before ? x.before->shape(1) : 0;
  int depth = windows.taps * channels;
  int64_t reach = int64_t(windows.reach()) * channels;
  mx::Shape kept = keep > 0 ? mx::Shape{batch, keep, channels} : mx::Shape{1};
  auto out = launch(
      {.kernel = "unfold",
       .inputs =
           {fresh,
            x.before.value_or(fresh),
            snake.value_or(fresh),
            pair(
                channels | (snake ? kSnaked : 0) | keep << 16,
                windows.stride | windows.dilation << 10 | windows.taps << 20),
            pair(split, x.count()),
            pair(windows.pad, windows.results)},
       .outputs =
           {{{batch * windows.results, depth}, fresh.dtype()},
            {kept, fresh.dtype()}},
       .constants = {{"WIDTH", width_of(channels)}},
       .groups = {chunks_of(reach), 1, batch},
       .threads = kChunkThreads},
      s);
  return {out[0], keep > 0 ? std::optional(out[1]) : std::nullopt};
}

// Products of windows with all filters, [B * results, O], in as many pieces as
// keep the windows small.
ops::StreamOutput products(
    const ops::FrameSpan& x,
    const mx::array& columns,
    const Windows& windows,
    const std::optional<mx::array>& snake,
    int keep,
    int64_t most_bytes,
    mx::Stream s) {
  int batch = x.x.shape(0), filters = columns.shape(1);
  int64_t row_bytes = int64_t(batch) * columns.shape(0) * x.x.itemsize();
  int most = std::max<int64_t>(1, most_bytes / row_bytes);
  if (windows.results <= most) {
    auto unfolded = unfold(x, windows, snake, keep, s);
    return {mx::matmul(unfolded.y, columns, s), unfolded.kept};
  }
  std::vector<mx::array> parts;
  std::optional<mx::array> kept;
  for (int begin = 0; begin < windows.results; begin += most) {
    int end = std::min(begin + most, windows.results);
    bool last = end == windows.results;
    auto part = unfold(x, windows.part(begin, end), snake, last ? keep : 0, s);
    auto y = mx::matmul(part.y, columns, s);
    parts.push_back(mx::reshape(y, {batch, end - begin, filters}, s));
    kept = part.kept;
  }
  auto y = mx::concatenate(parts, 1, s);
  return {mx::reshape(y, {-1, filters}, s), kept};
}

// The rows as they are, through Snake, and the last `keep` of them from before.
ops::StreamOutput single_rows(
    const ops::FrameSpan& x,
    const std::optional<mx::array>& snake,
    int keep,
    mx::Stream s) {
  Windows single{
      .stride = 1, .dilation = 1, .taps = 1, .pad = 0, .results = x.count()};
  return unfold(x, single, snake, keep, s);
}

// Taken through Snake first: tiles would do it once for every tap.
ops::StreamOutput snaked_tile_conv(
    const ops::FrameSpan& x,
    const ops::Filters& filters,
    ops::StreamingConv conv,
    int keep,
    mx::Stream s) {
  auto rows = single_rows(x, conv.snake, keep, s);
  conv.snake = std::nullopt;
  auto snaked = mx::reshape(rows.y, {1, x.count(), -1}, s);
  return {tile_conv({std::nullopt, snaked}, filters, conv, 0, s).y, rows.kept};
}

// Whether the rows are the windows.
bool is_plain(const ops::Conv1d& shape, int taps) {
  return taps == 1 && shape.stride == 1 && !shape.pad_left && !shape.pad_right;
}

} // namespace

ops::StreamOutput conv1d(
    const ops::FrameSpan& rows,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    mx::Stream s,
    int64_t most_window_bytes) {
  auto x = readable(rows, s);
  int count = x.count(), taps = filters.w.taps;
  int results = conv.shape.output_rows(count, taps);
  int keep = conv.keep ? std::max(0, count - conv.first_kept(results)) : 0;
  if (can_use_tile_conv(x, filters, conv, s)) {
    return conv.snake ? snaked_tile_conv(x, filters, conv, keep, s)
                      : tile_conv(x, filters, conv, keep, s);
  }
  const auto& columns = *filters.columns;
  bool plain = is_plain(conv.shape, taps) && !x.before && !conv.snake;
  auto windows = Windows::of(conv.shape, taps, results);
  auto y = plain
      ? ops::StreamOutput{mx::matmul(mx::flatten(x.x, 0, 1, s), columns, s), {}}
      : products(x, columns, windows, conv.snake, keep, most_window_bytes, s);
  y.y = apply_epilogue(
      y.y,
      {x.x.shape(0), results, columns.shape(1)},
      x.x,
      conv.epilogue,
      conv.residual,
      conv.residual_begin,
      s);
  return y;
}

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  int results = shape.output_rows(x.shape(1), w.shape(1));
  if (!has_kernels(s) || !is_device_array(x) || !fits(shape, w) ||
      x.dtype() != w.dtype() || results == 0) {
    return reference::conv1d(x, w, shape, epilogue, s);
  }
  ops::StreamingConv conv{.shape = shape, .epilogue = epilogue, .keep = false};
  ops::FrameSpan rows{std::nullopt, x};
  return gpu::conv1d(rows, ops::Filters::of(w, s), conv, s).y;
}

ops::StreamOutput conv_transpose1d(
    const ops::FrameSpan& rows,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    int keep,
    mx::Stream s) {
  auto x = readable(rows, s);
  int batch = x.x.shape(0), count = x.count();
  int filters = w.shape(0), taps = w.shape(1), channels = w.shape(2);
  ops::StreamOutput input{mx::reshape(x.x, {-1, channels}, s), std::nullopt};
  if (x.before || keep > 0) {
    input = single_rows(x, std::nullopt, keep, s);
  }
  auto columns =
      mx::transpose(mx::reshape(w, {filters * taps, channels}, s), s);
  int results = shape.output_rows(count, taps);
  auto y = launch_one(
      {.kernel = "overlap",
       .inputs =
           {mx::matmul(input.y, columns, s),
            bias,
            pair(filters, shape.stride | taps << 10 | shape.trim_left << 20),
            pair(count, results)},
       .outputs = {{{batch, results, filters}, mx::float32}},
       .groups = {chunks_of(int64_t(results) * filters), 1, batch},
       .threads = kChunkThreads},
      s);
  return {y, input.kept};
}

mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  bool fits = shape.stride < 1024 && w.shape(1) < 1024 &&
      shape.trim_left < 2048 && w.shape(2) < kSnaked;
  if (!has_kernels(s) || !fits || !is_device_array(x) ||
      x.dtype() != w.dtype() ||
      shape.output_rows(x.shape(1), w.shape(1)) <= 0) {
    return reference::conv_transpose1d(x, w, bias, shape, s);
  }
  return gpu::conv_transpose1d(
             ops::FrameSpan{std::nullopt, x}, w, bias, shape, 0, s)
      .y;
}

} // namespace nightingale::gpu
