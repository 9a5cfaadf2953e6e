#pragma once

#include <vector>

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/ops/streaming_conv.h"

// What the kernels over rows of channels have in common.

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

// Whether Metal gets it as `device` memory, as helpers in kernels take it: MLX
// hands smaller arrays in as `constant`.
inline bool is_device_array(const mx::array& x) {
  return x.size() >= 8;
}

// In two parts only where kernels can read both.
inline ops::FrameSpan readable(const ops::FrameSpan& rows, mx::Stream s) {
  bool both = !rows.before ||
      (is_device_array(*rows.before) && is_device_array(rows.x));
  return both ? rows : ops::FrameSpan{std::nullopt, ops::whole(rows, s)};
}

} // namespace nightingale::gpu
