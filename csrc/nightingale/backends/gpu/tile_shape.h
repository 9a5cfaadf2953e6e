#pragma once

#include <climits>
#include <vector>

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/testing.h"

// What the launches of tiles have in common.

namespace nightingale::gpu {

constexpr int kTileColumns = 32; // of x and w, that are multiplied at once

// Rows from which a group takes several tiles of them: fewer groups then read
// the weights, and enough are left for every core.
constexpr int kWideRows = 4096;

inline bool is_wide(int rows) {
  return rows >= test_hooks::wide_rows().value_or(kWideRows);
}

// Of the kernels whose groups make whole rows of a result.
constexpr int kWholePatch = 32; // columns of the result, of a SIMD group
constexpr int kWholeMostColumns = 512;

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

// Tiles of columns that are loaded at once: as many as divide them, at most
// `most`, a power of two.
inline int tile_depth(int columns, int most) {
  while (columns % (most * kTileColumns) != 0) {
    most /= 2;
  }
  return most;
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
        group_count(result_columns, width()),
        group_count(result_rows, height()),
        1};
    launch.threads = tile_threads(down * across);
  }
};

// What whole_row_launch divides: `rows` rows of `columns` in each of `batch`
// parts. `inner` is a divisor of what the products sum up over.
struct WholeRows {
  int rows, batch, columns, inner;
};

// How a group goes about it: tiles of 16 rows, `depth` tiles of columns loaded
// at once, `ahead` steps before they are needed. None of it changes a bit.
struct WholeShape {
  int tiles, depth, ahead;
};

inline WholeShape whole_shape(const WholeRows& whole) {
  return is_wide(whole.rows * whole.batch)
      ? WholeShape{2, tile_depth(whole.inner, 2), 2}
      : WholeShape{1, tile_depth(whole.inner, 4), 1};
}

// A launch whose groups make whole rows. Inputs and outputs are still to be
// set.
inline Launch whole_row_launch(
    const char* kernel,
    const WholeRows& whole,
    const WholeShape& shape) {
  return {
      .kernel = kernel,
      .inputs = {},
      .outputs = {},
      .constants =
          {{"N", whole.columns},
           {"ROWS", shape.tiles},
           {"COLUMNS", kWholePatch / 8},
           {"DEPTH", shape.depth},
           {"AHEAD", shape.ahead}},
      .groups = {group_count(whole.rows, 16 * shape.tiles), whole.batch, 1},
      .threads = tile_threads(whole.columns / kWholePatch)};
}

inline Launch whole_row_launch(const char* kernel, const WholeRows& whole) {
  return whole_row_launch(kernel, whole, whole_shape(whole));
}

} // namespace nightingale::gpu
