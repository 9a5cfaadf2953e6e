#include "nightingale/backends/cpu/product.h"

#include <algorithm>
#include <cstring>

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct OwnPanel;
struct DecodedRows;

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

void product(
    const Windows<float>& x,
    const Weights& w,
    const EpilogueWriter& epilogue) {
  auto loops = float_loops();
  auto pack = [&](int column, int columns, float* panel) {
    simd().product.pack_panel[static_cast<int>(w.storage)](
        w.rows(column, columns), w.depth, columns, w.depth, panel);
  };
  int tiles = row_tiles(x, loops.rows);
  if (tiles > kFewTiles || w.columns < kFewTiles * loops.columns / 2) {
    spread_rows(x, loops, w.columns, pack, epilogue);
    return;
  }
  // Few rows: each thread packs panels of its own and waits for nobody.
  parallel_for(ceil_div(w.columns, loops.columns), [&](int i) {
    int first = i * loops.columns;
    int last = std::min(w.columns, first + loops.columns);
    float* panel = scratch<OwnPanel>(w.depth * loops.columns);
    pack(first, last - first, panel);
    for (int begin = 0; begin < tiles; begin += kTilesPerBlock) {
      run_block(x, loops, begin, panel, first, last, epilogue);
    }
  });
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
  int before = x.rows_before(), span = x.span(rows);
  int source = begin * x.stride - x.pad_left - before;
  const T* batch_row = x.x + b * x.length * x.row_stride;
  RowTile<T> tile;
  tile.first = b * x.rows + first;
  tile.count = count;
  tile.skip = first - begin;
  if (source >= 0 && source + span <= x.length && !crowds_sets(x)) {
    tile.x = batch_row + (source + before) * x.row_stride;
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
  tile.x = padded + before * stride;
  tile.row_step = x.stride * stride;
  tile.tap_step = x.dilation * stride;
  return tile;
}

PanelLoops<float> float_loops() {
  const auto& loops = simd().product;
  auto nothing = [] {};
  return {
      loops.rows,
      loops.columns,
      kPackedFloats,
      loops.tile,
      loops.half_tile,
      nothing,
      nothing};
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
