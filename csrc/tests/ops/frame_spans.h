#pragma once

#include <doctest/doctest.h>

#include "nightingale/ops/streaming_conv.h"
#include "ops/arrays.h"

// Frames split over two arrays, for the tests of streaming ops.

namespace nightingale::testing {

inline mx::array alpha_of(int channels) {
  auto s = cpu_stream();
  return mx::add(mx::abs(noise_array({channels}, 5), s), mx::array(0.3f), s);
}

// The first `split` frames of x in `before`.
inline ops::FrameSpan split_at(const mx::array& x, int split) {
  int count = x.shape(1);
  if (split == 0) {
    return {std::nullopt, x};
  }
  auto dense = [](const mx::array& rows) {
    return mx::contiguous(rows, false, cpu_stream());
  };
  return {dense(rows_of(x, 0, split)), dense(rows_of(x, split, count))};
}

inline void check_kept(
    const std::optional<mx::array>& kept,
    const mx::array& x,
    int first) {
  if (first >= x.shape(1)) {
    CHECK_FALSE(kept);
    return;
  }
  REQUIRE(kept);
  CHECK(same_bits(*kept, rows_of(x, first, x.shape(1))));
}

} // namespace nightingale::testing
