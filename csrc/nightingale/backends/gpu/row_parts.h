#pragma once

#include <vector>

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/ops/streaming_conv.h"

// Helpers for the kernels over rows of channels.

namespace nightingale::gpu {

constexpr int kChunk = 1024; // elements of a group, as in the kernels
inline const std::vector<int> kChunkThreads{256, 128, 64, 32};

inline int chunks_of(int64_t size) {
  return (size + kChunk - 1) / kChunk;
}

// Elements that a thread reads at once, in rows of `columns`.
inline int width_of(int columns) {
  return columns % 4 == 0 ? 4 : 1;
}

// Two numbers for a kernel.
inline mx::array pair(int first, int second) {
  return numbers(std::vector<int>{first, second});
}

// Whether kernels run on `s` and take these frames.
inline bool reads_spans(const ops::FrameSpan& frames, const mx::Stream& s) {
  return has_kernels(s) && is_device_array(frames.x);
}

// Concatenated where kernels cannot read one of the two arrays. The frames have
// kLeastDeviceSize elements together: without `before`, x has.
inline ops::FrameSpan readable(const ops::FrameSpan& frames, mx::Stream s) {
  bool both = !frames.before ||
      (is_device_array(*frames.before) && is_device_array(frames.x));
  return both ? frames : ops::FrameSpan{std::nullopt, ops::to_array(frames, s)};
}

// Frames before those of `x`.
inline int split_of(const ops::FrameSpan& frames) {
  return frames.before ? frames.before->shape(1) : 0;
}

} // namespace nightingale::gpu
