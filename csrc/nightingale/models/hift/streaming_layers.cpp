#include "nightingale/models/hift/streaming_layers.h"

#include <algorithm>

namespace nightingale {

PendingFrames join(const Frames& kept, const Frames& fresh, mx::Stream s) {
  if (!kept && !fresh) {
    return std::nullopt;
  }
  return ops::join_frames(kept, fresh, s);
}

int frame_count(const PendingFrames& frames) {
  return frames ? frames->count() : 0;
}

Frames to_array(const PendingFrames& frames, mx::Stream s) {
  return frames ? Frames(ops::to_array(*frames, s)) : std::nullopt;
}

Conv Conv::take(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    const ops::Conv1d& shape,
    const FilterFormat& format,
    mx::Stream s) {
  return {
      ops::make_filters(
          weights.take_frame_conv(name, expected, mx::float32, format.bits, s),
          format.halves,
          s),
      weights.take(name + ".bias", {expected[0]}, mx::float32),
      shape};
}

Conv Conv::take_same(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    int dilation,
    const FilterFormat& format,
    mx::Stream s) {
  int pad = (expected[2] - 1) / 2 * dilation;
  ops::Conv1d shape{.dilation = dilation, .pad_left = pad, .pad_right = pad};
  return take(weights, name, expected, shape, format, s);
}

Frames forward(
    const Conv& layer,
    ConvState& state,
    const Chunk& chunk,
    ops::StreamingConv conv,
    mx::Stream s) {
  const auto& [frames, last] = chunk;
  conv.shape = layer.shape;
  conv.shape.pad_left = state.started ? state.padding : layer.shape.pad_left;
  conv.shape.pad_right = last ? layer.shape.pad_right : 0;
  int results =
      conv.shape.output_rows(frame_count(frames), layer.filters.w.taps);
  if (!frames || results == 0) {
    state.kept = to_array(frames, s);
    return std::nullopt;
  }
  conv.epilogue.bias = layer.b;
  conv.keep = !last;
  state.started = true;
  state.padding =
      std::max(0, conv.shape.pad_left - results * conv.shape.stride);
  state.first_kept += conv.first_kept(results);
  state.results += results;
  auto output = ops::streaming_conv1d(*frames, layer.filters, conv, s);
  state.kept = output.kept;
  return output.y;
}

Upsampling Upsampling::take(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    int stride) {
  return {
      {weights.take_conv_transpose(name, expected, mx::float32),
       weights.take(name + ".bias", {expected[1]}, mx::float32)},
      stride,
      (expected[2] - stride) / 2};
}

Frames forward(
    const Upsampling& layer,
    UpsamplingState& state,
    const Frames& fresh,
    bool last,
    mx::Stream s) {
  // Each result needs the frames before and after its own.
  auto frames = join(state.kept, fresh, s);
  int count = frame_count(frames), taps = layer.filters.w.shape(1);
  int first = state.started ? 1 : 0, end = last ? count : count - 1;
  if (end <= first) {
    state.kept = to_array(frames, s);
    return std::nullopt;
  }
  ops::ConvTranspose1d shape{
      .stride = layer.stride,
      .trim_left = layer.trim + first * layer.stride,
      .trim_right = last ? layer.trim : taps - layer.trim};
  auto output = ops::streaming_conv_transpose1d(
      *frames, layer.filters, {shape, last ? 0 : 2}, s);
  state.started = true;
  state.kept = output.kept;
  return output.y;
}

} // namespace nightingale
