#include "nightingale/ops/streaming_conv.h"

#include "mlx/ops.h"
#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

mx::array to_array(const FrameSpan& frames, mx::Stream s) {
  return frames.before ? mx::concatenate({*frames.before, frames.x}, 1, s)
                       : frames.x;
}

std::optional<mx::array>
slice_frames(const mx::array& frames, int begin, int end, mx::Stream s) {
  if (begin >= end) {
    return std::nullopt;
  }
  if (begin == 0 && end == frames.shape(1)) {
    return frames;
  }
  mx::Shape start(frames.ndim(), 0), stop = frames.shape();
  start[1] = begin;
  stop[1] = end;
  return mx::contiguous(mx::slice(frames, start, stop, s), false, s);
}

FrameSpan join_frames(
    const std::optional<mx::array>& first,
    const std::optional<mx::array>& second,
    mx::Stream s) {
  if (!first || !second) {
    return {std::nullopt, first ? *first : *second};
  }
  FrameSpan frames{first, *second};
  return on_cpu(s) ? FrameSpan{std::nullopt, to_array(frames, s)} : frames;
}

Filters make_filters(const Kernel& w, bool halves, mx::Stream s) {
  return on_cpu(s) ? Filters{w} : gpu::make_filters(w, halves, s);
}

StreamOutput streaming_conv1d(
    const FrameSpan& x,
    const Filters& filters,
    const StreamingConv& conv,
    mx::Stream s) {
  return on_cpu(s) ? reference::streaming_conv1d(x, filters, conv, s)
                   : gpu::streaming_conv1d(x, filters, conv, s);
}

StreamOutput streaming_conv_transpose1d(
    const FrameSpan& x,
    const TransposedFilters& filters,
    const StreamingConvTranspose& conv,
    mx::Stream s) {
  return on_cpu(s) ? reference::streaming_conv_transpose1d(x, filters, conv, s)
                   : gpu::streaming_conv_transpose1d(x, filters, conv, s);
}

MergedFrames
add_frames(const std::vector<FrameSpan>& parts, int count, mx::Stream s) {
  return on_cpu(s) ? reference::add_frames(parts, count, s)
                   : gpu::add_frames(parts, count, s);
}

MergedFrames mean_frames(
    const std::vector<FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  return on_cpu(s) ? reference::mean_frames(parts, count, slope, s)
                   : gpu::mean_frames(parts, count, slope, s);
}

} // namespace nightingale::ops
