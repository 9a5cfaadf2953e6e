#include <algorithm>

#include "mlx/ops.h"
#include "nightingale/backends/common.h"

// The composite ops over frames and samples.

namespace nightingale::backends {

namespace {

constexpr ops::Conv1d kCausal{.pad_left = 2};

// As [batch, T, C] of the input's dtype.
mx::array
frames_of(const ops::FrameInput& input, const mx::array& x, mx::Stream s) {
  check_one_solution(input.layout);
  auto typed = ops::cast(x, input.dtype, s);
  return x.ndim() == 3
      ? typed
      : mx::reshape(typed, {input.layout.batch, -1, x.shape(1)}, s);
}

// Frames [begin, end) of x in reverse order.
mx::array reversed(const mx::array& x, int begin, int end, mx::Stream s) {
  std::vector<int> order;
  for (int frame = end - 1; frame >= begin; --frame) {
    order.push_back(frame);
  }
  int count = order.size();
  return mx::take(x, mx::array(order.begin(), {count}), 1, s);
}

} // namespace

ops::Filters make_filters(const ops::Kernel& w, bool, mx::Stream) {
  return {w};
}

ops::StreamOutput streaming_conv1d(
    const ops::FrameSpan& x,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    mx::Stream s) {
  const auto& w = filters.w;
  auto frames = ops::to_array(x, s);
  int count = x.count();
  int results = conv.shape.output_rows(count, w.taps);
  ops::Epilogue epilogue = conv.epilogue;
  if (conv.residual) {
    int begin = conv.residual_begin;
    auto residual = ops::to_array(*conv.residual, s);
    epilogue.residual = ops::slice_frames(residual, begin, begin + results, s);
  }
  auto snaked = conv.snake ? ops::snake(frames, *conv.snake, s) : frames;
  auto y = ops::conv1d(snaked, w, {conv.shape, epilogue}, s);
  int first = conv.keep ? conv.first_kept(results) : count;
  return {y, ops::slice_frames(frames, first, count, s)};
}

ops::StreamOutput streaming_conv_transpose1d(
    const ops::FrameSpan& x,
    const ops::TransposedFilters& filters,
    const ops::StreamingConvTranspose& conv,
    mx::Stream s) {
  auto frames = ops::to_array(x, s);
  int count = x.count();
  return {
      ops::conv_transpose1d(frames, filters, conv.shape, s),
      ops::slice_frames(frames, count - conv.keep, count, s)};
}

ops::MergedFrames
add_frames(const std::vector<ops::FrameSpan>& parts, int count, mx::Stream s) {
  std::optional<mx::array> sum;
  std::vector<std::optional<mx::array>> kept;
  for (const auto& part : parts) {
    auto frames = ops::to_array(part, s);
    auto fresh = *ops::slice_frames(frames, 0, count, s);
    sum = sum ? mx::add(*sum, fresh, s) : fresh;
    kept.push_back(ops::slice_frames(frames, count, part.count(), s));
  }
  return {*sum, std::move(kept)};
}

ops::MergedFrames mean_frames(
    const std::vector<ops::FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  auto merged = backends::add_frames(parts, count, s);
  mx::array number(static_cast<float>(parts.size()));
  merged.y = ops::leaky_relu(mx::divide(merged.y, number, s), slope, s);
  return merged;
}

mx::array causal_conv(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    mx::Stream s) {
  auto frames = frames_of(input, input.x, s);
  return ops::conv1d(frames, conv.w, {kCausal, {.bias = conv.b}}, s);
}

mx::array normed_conv(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    mx::Stream s) {
  auto y = ops::causal_conv(input, conv, s);
  return ops::norm_mish(y, norm, std::nullopt, input.dtype, s);
}

ops::Normed resnet(
    const ops::FrameInput& input,
    const ops::Resnet& block,
    const ops::ResnetContext& context,
    mx::Stream s) {
  const auto &first = block.first, &second = block.second;
  auto x = frames_of(input, input.x, s);
  ops::Epilogue first_sum{.bias = first.b};
  std::optional<mx::array> skip;
  if (input.skip) {
    skip = frames_of(input, *input.skip, s);
    first_sum = {
        .residual = ops::conv1d(
            *skip, *block.first_skip_w, {kCausal, {.bias = first.b}}, s)};
  }
  auto h = ops::conv1d(x, first.w, {kCausal, first_sum}, s);
  h = ops::norm_mish(h, block.first_norm, context.shift, input.dtype, s);
  h = ops::conv1d(h, second.w, {kCausal, {.bias = second.b}}, s);
  h = ops::norm_mish(h, block.second_norm, std::nullopt, mx::float32, s);
  if (skip) {
    h = ops::linear(*skip, *block.residual_skip_w, {.residual = h}, s);
  }
  auto sum = ops::linear(
      x, block.residual_w, {.bias = block.residual_b, .residual = h}, s);
  return {sum, ops::layer_norm(sum, context.next_norm, input.dtype, s)};
}

ops::StreamOutput
centred_stft(const ops::FrameSpan& x, ops::SignalEnds ends, mx::Stream s) {
  constexpr int half = ops::kStftSize / 2;
  auto samples = ops::to_array(x, s);
  int count = samples.shape(1);
  std::vector<mx::array> parts{samples};
  if (ends.first) {
    parts.insert(parts.begin(), reversed(samples, 1, half + 1, s));
  }
  if (ends.last) {
    parts.push_back(reversed(samples, count - 1 - half, count - 1, s));
  }
  if (parts.size() > 1) {
    samples = mx::concatenate(parts, 1, s);
    count = samples.shape(1);
  }
  int first_kept = ends.last ? count : ops::stft_frames(count) * ops::kStftHop;
  return {
      ops::stft(mx::reshape(samples, {1, count}, s), s),
      ops::slice_frames(samples, first_kept, count, s)};
}

ops::StreamOutput waveform(
    const ops::FrameSpan& x,
    ops::SignalEnds ends,
    float limit,
    mx::Stream s) {
  auto frames = ops::to_array(x, s);
  auto samples = ops::istft(ops::polar_spectrum(frames, s), ends, s);
  samples = mx::clip(samples, mx::array(-limit), mx::array(limit), s);
  int count = x.count(), keep = ends.last ? 0 : ops::kStftOverlap - 1;
  return {
      samples, ops::slice_frames(frames, std::max(0, count - keep), count, s)};
}

} // namespace nightingale::backends
