#pragma once

#include <algorithm>
#include <cstdlib>

#include "nightingale/backends/cpu/epilogue.h"
#include "nightingale/backends/cpu/packed_matrix.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/ops/convolution.h"

namespace nightingale::cpu {

// The rows that enter a product: row t of batch row b takes `channels` from
// each of the input rows t * stride + tap * dilation - pad_left of batch row b,
// zeros where there is none. A linear has one tap and one batch row.
template <typename T>
struct Windows {
  const T*
      x; // [batch, length, row_stride], of which the first `channels` count
  int64_t row_stride;
  int batch = 1;
  int length;
  int rows;
  int channels;
  int taps = 1;
  int stride = 1;
  int dilation = 1;
  int pad_left = 0;

  int depth() const {
    return taps * channels;
  }
  int64_t row_step() const {
    return stride * row_stride;
  }
  int64_t tap_step() const {
    return dilation * row_stride;
  }
  // Input rows before the first tap's: where the dilation is negative.
  int rows_before() const {
    return dilation < 0 ? std::max(0, (1 - taps) * dilation) : 0;
  }
  // Input rows under `count` rows of the result.
  int span(int count) const {
    return (count - 1) * stride + std::abs((taps - 1) * dilation) + 1;
  }
};

template <typename T>
Windows<T> row_windows(const T* x, int rows, int depth) {
  Windows<T> windows;
  windows.x = x;
  windows.row_stride = windows.channels = depth;
  windows.length = windows.rows = rows;
  return windows;
}

// Those of a convolution. x: [B, T, C], which `data` are
template <typename T>
Windows<T> conv_windows(
    const mx::array& x,
    const T* data,
    int channels,
    int taps,
    const ops::Conv1d& shape) {
  Windows<T> windows;
  windows.x = data;
  windows.row_stride = x.shape(2);
  windows.batch = x.shape(0);
  windows.length = x.shape(1);
  windows.rows = shape.output_rows(x.shape(1), taps);
  windows.channels = channels;
  windows.taps = taps;
  windows.stride = shape.stride;
  windows.dilation = shape.dilation;
  windows.pad_left = shape.pad_left;
  return windows;
}

// One tile of rows, `count` of them wanted, and where its inputs are.
template <typename T>
struct RowTile {
  const T* x;
  int64_t row_step;
  int64_t tap_step;
  int first; // row of the result that the first wanted one is
  int count;
  int skip; // rows of the tile before those that are wanted
};

// Tile `index` of the windows cut into tiles of `rows`. Where it reaches beyond
// the input, or its rows would crowd the cache, it is copied into `padded`, of
// padded_size(x, rows).
template <typename T>
RowTile<T> row_tile(const Windows<T>& x, int rows, int index, T* padded);

// Between the rows of such a copy: a cache line more than they need, so that
// they do not all fall into the same sets of the cache.
template <typename T>
int64_t padded_stride(const Windows<T>& x) {
  return x.channels + 64 / sizeof(T);
}

template <typename T>
int64_t padded_size(const Windows<T>& x, int rows) {
  return x.span(rows) * padded_stride(x);
}

template <typename T>
int row_tiles(const Windows<T>& x, int rows) {
  return x.batch * ceil_div(x.rows, rows);
}

// Row tiles that meet a panel while it is in the first-level cache.
constexpr int kTilesPerBlock = 2;

// The loops that multiply a tile of rows by a panel of columns.
template <typename T>
struct PanelLoops {
  int rows; // of a tile
  int columns; // of a panel
  // Packed numbers that are used together: half of a core's second-level cache.
  int64_t cached;
  void (*tile)(const TileArgsOf<T>& args);
  void (*half_tile)(const TileArgsOf<T>& args); // the first half of the columns
  // Called before and after the tiles of a block, on its thread.
  void (*begin)();
  void (*end)();
};

constexpr int kMostTileSums = 1024;

// Multiplies up to kTilesPerBlock row tiles, from `begin` on, by the columns
// [first, last), whose panels are packed one behind the other.
template <typename T>
void run_block(
    const Windows<T>& x,
    const PanelLoops<T>& loops,
    int begin,
    const T* packed,
    int first,
    int last,
    const EpilogueWriter& epilogue) {
  struct PaddedRows;
  int64_t padded_each = padded_size(x, loops.rows);
  T* padded = scratch<PaddedRows, T>(kTilesPerBlock * padded_each);
  RowTile<T> tiles[kTilesPerBlock];
  int count = std::min(kTilesPerBlock, row_tiles(x, loops.rows) - begin);
  for (int i = 0; i < count; ++i) {
    tiles[i] = row_tile(x, loops.rows, begin + i, padded + i * padded_each);
  }
  alignas(64) float sums[kMostTileSums];
  loops.begin();
  for (int column = first; column < last; column += loops.columns) {
    int columns = std::min(loops.columns, last - column);
    auto multiply = columns <= loops.columns / 2 ? loops.half_tile : loops.tile;
    for (int i = 0; i < count; ++i) {
      const auto& tile = tiles[i];
      multiply(
          {.x = tile.x,
           .row_step = tile.row_step,
           .tap_step = tile.tap_step,
           .taps = x.taps,
           .depth = x.channels,
           .w = packed + (column - first) * int64_t(x.depth()),
           .w_stride = loops.columns,
           .y = sums,
           .y_stride = loops.columns});
      const float* wanted = sums + tile.skip * loops.columns;
      epilogue(wanted, loops.columns, tile.first, tile.count, column, columns);
    }
  }
  loops.end();
}

// The product by groups of panels that all threads share: each thread takes
// some of the rows. pack(column, columns, panel) packs one panel.
template <typename T, typename Pack>
void spread_rows(
    const Windows<T>& x,
    const PanelLoops<T>& loops,
    int columns,
    Pack pack,
    const EpilogueWriter& epilogue) {
  struct PackedWeights;
  int width = loops.columns, panels = ceil_div(columns, width);
  int64_t panel_size = int64_t(std::max(1, x.depth())) * width;
  int group = std::max<int64_t>(1, loops.cached / panel_size);
  T* packed = scratch<PackedWeights, T>(std::min(group, panels) * panel_size);
  for (int begin = 0; begin < panels; begin += group) {
    int count = std::min(group, panels - begin), first = begin * width;
    int last = std::min(columns, first + count * width);
    parallel_for(count, [&](int i) {
      int column = first + i * width;
      pack(column, std::min(width, last - column), packed + i * panel_size);
    });
    int tiles = row_tiles(x, loops.rows);
    parallel_for(ceil_div(tiles, kTilesPerBlock), [&](int block) {
      int from = block * kTilesPerBlock;
      run_block(x, loops, from, packed, first, last, epilogue);
    });
  }
}

PanelLoops<float> float_loops();

// x · wᵀ, then the epilogue; w: [columns, taps * channels]. Every sum is in one
// order, from the first tap and channel to the last, whatever stands beside it.
void product(
    const Windows<float>& x,
    const void* w,
    Storage storage,
    int columns,
    const EpilogueWriter& epilogue);

// The same with a quantized matrix, dequantized panel by panel.
void product(
    const Windows<float>& x,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue);

} // namespace nightingale::cpu
