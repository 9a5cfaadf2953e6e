#pragma once

#include <climits>
#include <vector>

#include "nightingale/ops/backend.h"

// What the launches of tiles have in common.

namespace nightingale::gpu {

constexpr int kTileColumns = 32; // of x and w, that are multiplied at once

// Of the kernels whose groups make whole rows of a result.
constexpr int kWholeRows = 16;
constexpr int kWholePatch = 32; // columns of the result, of a SIMD group
constexpr int kWholeMostColumns = 512;
constexpr int kWholeMostDepth = 2; // see tile_depth

// Weights of a matrix above which the GPU's time counts for more than the
// host's: MLX's products are slower to launch and faster to run.
constexpr size_t kTileMostWeights = 1 << 20;
constexpr size_t kTileMostNumbers = INT_MAX; // of x: the kernels count in int

inline bool is_half(mx::Dtype dtype) {
  return dtype == mx::float16 || dtype == mx::bfloat16;
}

// Whether a group can make whole rows of `columns`.
inline bool fits_whole_rows(int columns) {
  return columns % kWholePatch == 0 && columns <= kWholeMostColumns;
}

// Tiles of columns that are loaded at once: `most`, where that divides them.
inline int tile_depth(int columns, int most) {
  return columns % (most * kTileColumns) == 0 ? most : 1;
}

inline int group_count(int size, int part) {
  return (size + part - 1) / part;
}

// Sizes of a group that has so many patches: one for each SIMD group, and fewer
// by halves, as long as all have the same number.
inline std::vector<int> tile_threads(int patches) {
  std::vector<int> sizes;
  for (int simds = patches;; simds /= 2) {
    sizes.push_back(32 * simds);
    if (simds % 2 != 0) {
      return sizes;
    }
  }
}

} // namespace nightingale::gpu
