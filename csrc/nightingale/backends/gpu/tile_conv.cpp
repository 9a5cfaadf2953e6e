#include "nightingale/backends/gpu/tile_conv.h"

#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/gpu/tile_shape.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

constexpr int kResidual = 2, kSnake = 1; // flags beside the kept frames
constexpr int kPatchColumns = 4; // of 8

// Eight patches in a group: as many across as the filters fill.
PatchShape shape_of(int filters) {
  int across = 4;
  while (filters % (8 * kPatchColumns * across) != 0) {
    across /= 2;
  }
  return {2, kPatchColumns, 8 / across, across, 1};
}

bool is_readable(const ops::FrameSpan& frames) {
  return frames.x.dtype() == mx::float32 && frames.x.shape(0) == 1 &&
      is_device_array(frames.x) &&
      (!frames.before || is_device_array(*frames.before));
}

bool is_small(int64_t rows, int columns) {
  return rows * columns <= static_cast<int64_t>(kTileMostNumbers);
}

} // namespace

bool fits_tile_conv(const SpanConv& work) {
  const auto& [x, filters, conv, keep] = work;
  const auto& shape = conv.shape;
  const auto& epilogue = conv.epilogue;
  int count = x.count(), results = shape.output_rows(count, filters.w.taps);
  return filters.halves && is_readable(x) && shape.stride == 1 &&
      shape.groups == 1 && filters.w.channels() % kTileColumns == 0 &&
      filters.w.filters() % (8 * kPatchColumns) == 0 && epilogue.bias &&
      epilogue.activation == ops::Activation::none && !epilogue.residual &&
      (!conv.residual || is_readable(*conv.residual)) &&
      is_small(count, filters.w.channels()) &&
      is_small(results, filters.w.filters());
}

ops::StreamOutput tile_conv(const SpanConv& work, mx::Stream s) {
  const auto& [x, filters, conv, keep] = work;
  if (!fits_tile_conv(work) || conv.snake) {
    throw Error("tile_conv does not support this convolution");
  }
  int channels = filters.w.channels(), columns = filters.w.filters();
  int taps = filters.w.taps, count = x.count();
  int results = conv.shape.output_rows(count, taps);
  auto residual = conv.residual.value_or(ops::FrameSpan{std::nullopt, x.x});
  int parts = (conv.epilogue.snake ? kSnake : 0) |
      (conv.residual ? kResidual : 0) | keep << 2;
  mx::Shape kept = keep > 0 ? mx::Shape{1, keep, channels} : mx::Shape{1};
  Launch tiles{
      .kernel = "tile_conv",
      .inputs =
          {x.x,
           x.before.value_or(x.x),
           *filters.halves,
           *conv.epilogue.bias,
           conv.epilogue.snake.value_or(*conv.epilogue.bias),
           residual.x,
           residual.before.value_or(residual.x),
           pair(split_of(x), count),
           pair(conv.shape.pad_left, results),
           pair(conv.shape.dilation, parts),
           pair(conv.residual_begin, split_of(residual))},
      .outputs = {{{1, results, columns}, mx::float32}, {kept, mx::float32}},
      .constants = {{"T", mx::float16}, {"C", channels}, {"TAPS", taps}},
      .threads = {}};
  shape_of(columns).divide(tiles, results, columns);
  auto out = launch(tiles, s);
  return {out[0], keep > 0 ? std::optional(out[1]) : std::nullopt};
}

} // namespace nightingale::gpu
