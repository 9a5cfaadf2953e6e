#include "nightingale/backends/cpu/quantized_product.h"

#include <optional>
#include <string_view>

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct TileSums;
struct Gated;

// A thread takes two tiles of a matrix at once, and rows that stay in its
// first-level cache beside them.
constexpr int kBlockColumns = 2 * kQuantizedTile;
constexpr int kBlockRows = 40;

// A tile, or two of them, by all rows. sums: [rows, stride] of each
void multiply_tiles(
    const QuantizedRows& x,
    const PackedQuantized& w,
    int first,
    std::optional<int> second,
    float* first_sums,
    float* second_sums,
    int64_t stride) {
  QuantizedTileArgs a{
      .x = x,
      .tiles = {w.tile(first), second ? w.tile(*second) : nullptr},
      .y = {first_sums, second_sums},
      .y_stride = stride};
  simd().quantized.tile[quantized_index(w.bits)](a);
}

} // namespace

bool outruns_floats() {
  static const bool vnni = std::string_view(simd().name) == "avx512vnni";
  return vnni;
}

void multiply(
    const QuantizedRows& x,
    int first_row,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue) {
  int strips = ceil_div(w.columns, kBlockColumns);
  parallel_for(ceil_div(x.rows, kBlockRows) * strips, [&](int block) {
    int row = block / strips * kBlockRows, tile = block % strips * 2;
    int column = tile * kQuantizedTile;
    int columns = std::min(kBlockColumns, w.columns - column);
    QuantizedRows rows = x.from_row(row);
    rows.rows = std::min(kBlockRows, rows.rows);
    float* sums = scratch<TileSums>(kBlockRows * kBlockColumns);
    bool both = columns > kQuantizedTile;
    multiply_tiles(
        rows,
        w,
        tile,
        both ? std::optional(tile + 1) : std::nullopt,
        sums,
        sums + kQuantizedTile,
        kBlockColumns);
    epilogue(sums, kBlockColumns, first_row + row, rows.rows, column, columns);
  });
}

void multiply_swiglu_tile(
    const QuantizedRows& x,
    const PackedQuantized& w,
    int tile,
    float* y,
    int64_t stride) {
  int64_t size = int64_t(x.rows) * kQuantizedTile;
  float* gate = scratch<Gated>(2 * size);
  float* up = gate + size;
  int up_tile = w.columns / 2 / kQuantizedTile + tile;
  multiply_tiles(x, w, tile, up_tile, gate, up, kQuantizedTile);
  for (int r = 0; r < x.rows; ++r) {
    simd().silu_mul(
        gate + r * kQuantizedTile,
        up + r * kQuantizedTile,
        kQuantizedTile,
        y + r * stride);
  }
}

} // namespace nightingale::cpu
