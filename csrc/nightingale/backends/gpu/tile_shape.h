#pragma once

#include <climits>
#include <vector>

#include "nightingale/backends/gpu/kernel.h"

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
// by halves, as long as all have the same number; at last all for one.
inline std::vector<int> tile_threads(int patches) {
  std::vector<int> sizes;
  int simds = patches;
  for (; simds % 2 == 0; simds /= 2) {
    sizes.push_back(32 * simds);
  }
  sizes.push_back(32 * simds);
  if (simds > 1) {
    sizes.push_back(32);
  }
  return sizes;
}

// How a product is shared out: patches of 16 * rows by 8 * columns for each
// SIMD group, down by across patches for each group, `depth` tiles of columns
// loaded at once.
struct PatchShape {
  int rows, columns, down, across, depth;

  int height() const {
    return 16 * rows * down;
  }
  int width() const {
    return 8 * columns * across;
  }

  // Sets what follows from it, for a result of `result_rows` by
  // `result_columns`.
  void divide(Launch& launch, int result_rows, int result_columns) const {
    launch.constants.insert(
        launch.constants.end(),
        {{"N", result_columns},
         {"ROWS", rows},
         {"COLUMNS", columns},
         {"DOWN", down},
         {"ACROSS", across},
         {"DEPTH", depth}});
    launch.groups = {
        result_columns / width(), group_count(result_rows, height()), 1};
    launch.threads = tile_threads(down * across);
  }
};

// A launch whose groups make whole rows of `columns`, `rows` of them in each of
// `batch` parts. Inputs and outputs are still to be set.
inline Launch whole_row_launch(
    const char* kernel,
    int rows,
    int batch,
    int columns,
    bool deep) {
  return {
      .kernel = kernel,
      .inputs = {},
      .outputs = {},
      .constants =
          {{"N", columns},
           {"COLUMNS", kWholePatch / 8},
           {"DEPTH", deep ? kWholeMostDepth : 1}},
      .groups = {group_count(rows, kWholeRows), batch, 1},
      .threads = tile_threads(columns / kWholePatch)};
}

// Whether whole_row_launch may be deep where products are of `columns`.
inline bool fits_deep_tiles(int columns) {
  return tile_depth(columns, kWholeMostDepth) > 1;
}

} // namespace nightingale::gpu
