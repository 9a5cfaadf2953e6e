#include "mlx/ops.h"
#include "nightingale/backends/signal_ops.h"
#include "nightingale/ops/activation.h"

namespace nightingale::reference {

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
  auto merged = reference::add_frames(parts, count, s);
  mx::array number(static_cast<float>(parts.size()));
  merged.y = ops::leaky_relu(mx::divide(merged.y, number, s), slope, s);
  return merged;
}

} // namespace nightingale::reference
