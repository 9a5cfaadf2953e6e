#include "nightingale/backends/cpu/product.h"

#include <algorithm>
#include <cstring>

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct PackedWeights;
struct OwnPanel;
struct DecodedRows;

// Packed weights that are used together: half of a core's second-level cache.
constexpr int64_t kPackedFloats = 1 << 18;
// Up to this many row tiles, and over half as many panels, it is the panels
// that are spread over the threads.
constexpr int kFewTiles = 32;

struct Weights {
  const void* data; // [columns, depth]
  Storage storage;
  int64_t depth;
  int columns;
  const PackedQuantized* quantized = nullptr; // in place of `data`

  const void* rows(int column, int count) const {
    if (quantized) {
      float* decoded = scratch<DecodedRows>(count * depth);
      decode_rows(*quantized, column, count, decoded);
      return decoded;
    }
    return static_cast<const char*>(data) +
        column * depth * storage_bytes(storage);
  }
};

// Packs the panel that begins at `column`.
void pack_panel(const Weights& w, int column, float* panel) {
  const auto& loops = simd().product;
  int columns = std::min(loops.columns, w.columns - column);
  loops.pack_panel[static_cast<int>(w.storage)](
      w.rows(column, columns), w.depth, columns, w.depth, panel);
}

void run_tile(
    const Windows<float>& x,
    const RowTile<float>& tile,
    const float* panel,
    int column,
    int columns,
    const EpilogueWriter& epilogue) {
  const auto& loops = simd().product;
  alignas(64) float sums[kMostTileRows * kMostTileColumns];
  TileArgs a;
  a.x = tile.x;
  a.row_step = tile.row_step;
  a.tap_step = tile.tap_step;
  a.taps = x.taps;
  a.depth = x.channels;
  a.w = panel;
  a.w_stride = loops.columns;
  a.y = sums;
  a.y_stride = loops.columns;
  (columns <= loops.columns / 2 ? loops.half_tile : loops.tile)(a);
  epilogue(
      sums + tile.skip * loops.columns,
      loops.columns,
      tile.first,
      tile.count,
      column,
      columns);
}

// Tiles [begin, end) of the rows with the packed columns [first, last).
void run_block(
    const Windows<float>& x,
    int begin,
    int end,
    const float* packed,
    int first,
    int last,
    const EpilogueWriter& epilogue) {
  const auto& loops = simd().product;
  run_tiles(
      x,
      loops.rows,
      loops.columns,
      begin,
      end,
      packed,
      first,
      last,
      [&](const auto& tile, const float* panel, int column, int columns) {
        run_tile(x, tile, panel, column, columns, epilogue);
      });
}

// Few rows: each thread packs panels of its own and waits for nobody.
void spread_columns(
    const Windows<float>& x,
    const Weights& w,
    const EpilogueWriter& epilogue) {
  const auto& loops = simd().product;
  int tiles = row_tiles(x, loops.rows);
  parallel_for(ceil_div(w.columns, loops.columns), [&](int panel) {
    int first = panel * loops.columns;
    int last = std::min(w.columns, first + loops.columns);
    float* packed = scratch<OwnPanel>(w.depth * loops.columns);
    pack_panel(w, first, packed);
    for (int begin = 0; begin < tiles; begin += kTilesPerBlock) {
      int end = std::min(tiles, begin + kTilesPerBlock);
      run_block(x, begin, end, packed, first, last, epilogue);
    }
  });
}

// Many rows: all threads use the same panels.
void spread_rows(
    const Windows<float>& x,
    const Weights& w,
    const EpilogueWriter& epilogue) {
  const auto& loops = simd().product;
  int tiles = row_tiles(x, loops.rows);
  int panels = ceil_div(w.columns, loops.columns);
  int64_t panel_size = std::max<int64_t>(1, w.depth) * loops.columns;
  int group = std::max<int64_t>(1, kPackedFloats / panel_size);
  float* packed = scratch<PackedWeights>(std::min(group, panels) * panel_size);
  for (int begin = 0; begin < panels; begin += group) {
    int count = std::min(group, panels - begin);
    int first = begin * loops.columns;
    int last = std::min(w.columns, first + count * loops.columns);
    parallel_for(count, [&](int i) {
      pack_panel(w, first + i * loops.columns, packed + i * panel_size);
    });
    parallel_for(ceil_div(tiles, kTilesPerBlock), [&](int block) {
      int from = block * kTilesPerBlock;
      int to = std::min(tiles, from + kTilesPerBlock);
      run_block(x, from, to, packed, first, last, epilogue);
    });
  }
}

void product(
    const Windows<float>& x,
    const Weights& w,
    const EpilogueWriter& epilogue) {
  const auto& loops = simd().product;
  bool few_rows = row_tiles(x, loops.rows) <= kFewTiles &&
      w.columns >= kFewTiles * loops.columns / 2;
  (few_rows ? spread_columns : spread_rows)(x, w, epilogue);
}

} // namespace

// Whether rows lie so that one column of them falls into a few sets of the
// first-level cache, which then cannot hold a tile: it is copied. Under several
// taps the copy costs more than it gains.
template <typename T>
bool crowds_sets(const Windows<T>& x) {
  return x.taps == 1 && x.row_stride * sizeof(T) % 1024 == 0;
}

template <typename T>
RowTile<T> row_tile(const Windows<T>& x, int rows, int index, T* padded) {
  int tiles = ceil_div(x.rows, rows), b = index / tiles;
  int first = index % tiles * rows, count = std::min(rows, x.rows - first);
  // The last tile begins early enough to be whole, where there are the rows.
  int begin = std::max(0, std::min(first, x.rows - rows));
  int source = begin * x.stride - x.pad_left, span = x.span(rows);
  const T* batch_row = x.x + b * x.length * x.row_stride;
  RowTile<T> tile;
  tile.first = b * x.rows + first;
  tile.count = count;
  tile.skip = first - begin;
  if (source >= 0 && source + span <= x.length && !crowds_sets(x)) {
    tile.x = batch_row + source * x.row_stride;
    tile.row_step = x.row_step();
    tile.tap_step = x.tap_step();
    return tile;
  }
  int64_t stride = padded_stride(x);
  for (int i = 0; i < span; ++i) {
    T* to = padded + i * stride;
    int t = source + i;
    if (t >= 0 && t < x.length) {
      const T* from = batch_row + t * x.row_stride;
      std::memcpy(to, from, x.channels * sizeof(T));
    } else {
      std::memset(to, 0, x.channels * sizeof(T));
    }
  }
  tile.x = padded;
  tile.row_step = x.stride * stride;
  tile.tap_step = x.dilation * stride;
  return tile;
}

template RowTile<float> row_tile(const Windows<float>&, int, int, float*);
template RowTile<uint16_t>
row_tile(const Windows<uint16_t>&, int, int, uint16_t*);

void product(
    const Windows<float>& x,
    const void* w,
    Storage storage,
    int columns,
    const EpilogueWriter& epilogue) {
  product(x, Weights{w, storage, x.depth(), columns}, epilogue);
}

void product(
    const Windows<float>& x,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue) {
  product(
      x, Weights{nullptr, Storage::f32, x.depth(), w.columns, &w}, epilogue);
}

} // namespace nightingale::cpu
