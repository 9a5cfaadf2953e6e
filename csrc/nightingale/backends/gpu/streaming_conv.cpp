#include <algorithm>
#include <bit>

#include "mlx/ops.h"
#include "nightingale/backends/gpu/epilogue.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/gpu/tile_conv.h"

namespace nightingale::gpu {

namespace {

constexpr int kSnake = 1 << 15; // flag beside the channels, in unfold.metal
constexpr int64_t kMostWindowBytes = 256 << 20;

// The arguments of unfold.metal.
struct Windows {
  int stride, dilation, taps, pad;
  int results; // per batch row

  static Windows of(const ops::Conv1d& shape, int taps, int results) {
    return {shape.stride, shape.dilation, taps, shape.pad_left, results};
  }
  // Input frames that the windows cover.
  int reach() const {
    return (results - 1) * stride + (taps - 1) * dilation + 1;
  }
  // The windows of results [begin, end).
  Windows part(int begin, int end) const {
    return {stride, dilation, taps, pad - begin * stride, end - begin};
  }
};

// [B * results, taps * C], and the last `keep` frames of x.
ops::StreamOutput unfold(
    const ops::FrameSpan& x,
    const Windows& windows,
    const std::optional<mx::array>& snake,
    int keep,
    mx::Stream s) {
  const auto& fresh = x.x;
  int batch = fresh.shape(0), channels = fresh.shape(2);
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
                channels | (snake ? kSnake : 0) | keep << 16,
                windows.stride | windows.dilation << 10 | windows.taps << 20),
            pair(split_of(x), x.count()),
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

// Products of windows with all filters, [B * results, O]. The windows of one
// part have at most `most_bytes`.
ops::StreamOutput products(
    const SpanConv& work,
    const Windows& windows,
    int64_t most_bytes,
    mx::Stream s) {
  const auto& [x, kernel, conv, keep] = work;
  const auto& columns = *kernel.columns;
  const auto& snake = conv.snake;
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

// The frames after Snake, and the last `keep` of them without it.
ops::StreamOutput snaked_frames(
    const ops::FrameSpan& x,
    const std::optional<mx::array>& snake,
    int keep,
    mx::Stream s) {
  Windows single{
      .stride = 1, .dilation = 1, .taps = 1, .pad = 0, .results = x.count()};
  return unfold(x, single, snake, keep, s);
}

// Snake runs first: tiles would compute it once for every tap.
ops::StreamOutput snaked_tile_conv(const SpanConv& work, mx::Stream s) {
  auto frames = snaked_frames(work.x, work.conv.snake, work.keep, s);
  auto conv = work.conv;
  conv.snake = std::nullopt;
  ops::FrameSpan snaked{
      std::nullopt, mx::reshape(frames.y, {1, work.x.count(), -1}, s)};
  return {tile_conv({snaked, work.filters, conv, 0}, s).y, frames.kept};
}

// Whether each window is one frame.
bool is_plain(const ops::Conv1d& shape, int taps) {
  return taps == 1 && shape.stride == 1 && !shape.pad_left && !shape.pad_right;
}

bool reads_all(const std::vector<ops::FrameSpan>& parts, mx::Stream s) {
  return std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
    return reads_spans(part, s);
  });
}

constexpr size_t kMergeInputs = 3; // of merge.metal

// One launch over the elements of the longest part: the first `count` frames
// are added, the others copied to `kept`. A slope above 0 asks for leaky_relu
// of the mean.
ops::MergedFrames merge(
    const std::vector<ops::FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  int columns = parts[0].x.shape(-1), size = count * columns, longest = size;
  std::vector<mx::array> inputs, extents;
  std::vector<KernelOutput> outputs{{{1, count, columns}, mx::float32}};
  for (size_t i = 0; i < kMergeInputs; ++i) {
    bool there = i < parts.size();
    auto part = readable(parts[there ? i : 0], s);
    int split = part.before ? part.before->size() : 0;
    int elements = part.count() * columns, rest = part.count() - count;
    longest = std::max(longest, elements);
    inputs.push_back(part.x);
    inputs.push_back(part.before.value_or(part.x));
    extents.push_back(pair(split, elements));
    auto kept = there && rest > 0 ? mx::Shape{1, rest, columns} : mx::Shape{1};
    outputs.push_back({kept, mx::float32});
  }
  inputs.push_back(pair(size, longest));
  inputs.insert(inputs.end(), extents.begin(), extents.end());
  inputs.push_back(pair(parts.size(), std::bit_cast<int>(slope)));
  auto out = launch(
      {.kernel = "merge",
       .inputs = std::move(inputs),
       .outputs = std::move(outputs),
       .constants = {{"WIDTH", width_of(columns)}},
       .groups = {chunks_of(longest), 1, 1},
       .threads = kChunkThreads},
      s);
  ops::MergedFrames merged{out[0], {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    bool rest = parts[i].count() > count;
    merged.kept.push_back(rest ? std::optional(out[i + 1]) : std::nullopt);
  }
  return merged;
}

} // namespace

ops::Filters make_filters(const ops::Kernel& w, bool halves, mx::Stream s) {
  if (w.is_quantized()) {
    return {w};
  }
  auto rows = mx::reshape(w.matrix.w, {w.filters(), w.taps * w.channels()}, s);
  ops::Filters filters{w, mx::transpose(rows, s)};
  if (halves && has_tiles(s)) {
    filters.halves = ops::computed(mx::astype(rows, mx::float16, s));
  }
  return filters;
}

ops::StreamOutput
window_conv(const SpanConv& work, int64_t most_window_bytes, mx::Stream s) {
  const auto& [x, filters, conv, keep] = work;
  int taps = filters.w.taps, results = conv.shape.output_rows(x.count(), taps);
  const auto& columns = *filters.columns;
  bool plain = is_plain(conv.shape, taps) && !x.before && !conv.snake;
  auto windows = Windows::of(conv.shape, taps, results);
  auto y = plain
      ? ops::StreamOutput{mx::matmul(mx::flatten(x.x, 0, 1, s), columns, s), {}}
      : products(work, windows, most_window_bytes, s);
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

ops::StreamOutput streaming_conv1d(
    const ops::FrameSpan& frames,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    mx::Stream s) {
  if (!reads_spans(frames, s)) {
    return backends::streaming_conv1d(frames, filters, conv, s);
  }
  auto x = readable(frames, s);
  int count = x.count();
  int results = conv.shape.output_rows(count, filters.w.taps);
  int keep = conv.keep ? std::max(0, count - conv.first_kept(results)) : 0;
  SpanConv work{x, filters, conv, keep};
  if (has_tiles(s) && fits_tile_conv(work)) {
    return conv.snake ? snaked_tile_conv(work, s) : tile_conv(work, s);
  }
  return window_conv(work, kMostWindowBytes, s);
}

ops::StreamOutput streaming_conv_transpose1d(
    const ops::FrameSpan& frames,
    const ops::TransposedFilters& filters,
    const ops::StreamingConvTranspose& conv,
    mx::Stream s) {
  if (!reads_spans(frames, s)) {
    return backends::streaming_conv_transpose1d(frames, filters, conv, s);
  }
  auto x = readable(frames, s);
  const auto& [w, bias] = filters;
  const auto& shape = conv.shape;
  int batch = x.x.shape(0), count = x.count();
  int outputs = w.shape(0), taps = w.shape(1), channels = w.shape(2);
  ops::StreamOutput input{mx::reshape(x.x, {-1, channels}, s), std::nullopt};
  if (x.before || conv.keep > 0) {
    input = snaked_frames(x, std::nullopt, conv.keep, s);
  }
  auto columns =
      mx::transpose(mx::reshape(w, {outputs * taps, channels}, s), s);
  int results = shape.output_rows(count, taps);
  auto y = launch_one(
      {.kernel = "overlap",
       .inputs =
           {mx::matmul(input.y, columns, s),
            bias,
            pair(outputs, shape.stride | taps << 10 | shape.trim_left << 20),
            pair(count, results)},
       .outputs = {{{batch, results, outputs}, mx::float32}},
       .groups = {chunks_of(int64_t(results) * outputs), 1, batch},
       .threads = kChunkThreads},
      s);
  return {y, input.kept};
}

ops::MergedFrames
add_frames(const std::vector<ops::FrameSpan>& parts, int count, mx::Stream s) {
  return reads_all(parts, s) ? merge(parts, count, 0, s)
                             : backends::add_frames(parts, count, s);
}

ops::MergedFrames mean_frames(
    const std::vector<ops::FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  return reads_all(parts, s) ? merge(parts, count, slope, s)
                             : backends::mean_frames(parts, count, slope, s);
}

} // namespace nightingale::gpu
