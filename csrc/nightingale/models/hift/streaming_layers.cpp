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

ops::Conv1d same_padding(int taps, int dilation) {
  int pad = (taps - 1) / 2 * dilation;
  return {.dilation = dilation, .pad_left = pad, .pad_right = pad};
}

Conv::Conv(
    const LayerReader& reader,
    const std::string& layer,
    const mx::Shape& expected,
    const ops::Conv1d& shape,
    bool halves)
    : filters(ops::make_filters(
          reader.kernel(layer, expected),
          halves,
          reader.format().stream)),
      b(reader.tensor(layer + ".bias", {expected[0]})),
      shape(shape) {}

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

Upsampling::Upsampling(
    const LayerReader& reader,
    const std::string& layer,
    const mx::Shape& expected,
    int stride)
    : filters(
          {reader.transposed_kernel(layer, expected),
           reader.tensor(layer + ".bias", {expected[1]})}),
      stride(stride),
      trim((expected[2] - stride) / 2) {}

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

ResBlock::ResBlock(
    const LayerReader& block,
    int channels,
    int taps,
    bool halves) {
  for (size_t i = 0; i < kDilations.size(); ++i) {
    std::string number = std::to_string(i);
    auto alpha = [&](const std::string& list) {
      return block.tensor(list + number + ".alpha", {channels});
    };
    auto conv = [&](const std::string& list, int dilation) {
      auto shape = same_padding(taps, dilation);
      mx::Shape kernel{channels, channels, taps};
      return Conv(block, list + number, kernel, shape, halves);
    };
    layers_.push_back(
        {alpha("activations1."),
         conv("convs1.", kDilations[i]),
         alpha("activations2."),
         conv("convs2.", 1)});
  }
}

Frames ResBlock::forward(
    ResBlockState& state,
    Frames x,
    bool last,
    mx::Stream s) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    auto& [dilated, plain] = state.layers[i];
    auto input = join(dilated.kept, x, s);
    int first = dilated.first_kept;
    auto hidden = nightingale::forward(
        layer.dilated,
        dilated,
        {input, last},
        {.snake = layer.dilated_alpha,
         .epilogue = {.snake = layer.plain_alpha}},
        s);
    // `input` starts before the frames that the sum needs.
    int begin = plain.results - first;
    x = nightingale::forward(
        layer.plain,
        plain,
        {join(plain.kept, hidden, s), last},
        {.residual = input, .residual_begin = begin},
        s);
  }
  return x;
}

} // namespace nightingale
