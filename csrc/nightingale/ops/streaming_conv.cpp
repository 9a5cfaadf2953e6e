#include "nightingale/ops/streaming_conv.h"

#include "mlx/ops.h"

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

} // namespace nightingale::ops
