#include "nightingale/backends/cpu/quantized_product.h"

#include <optional>
#include <string_view>

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct TileSums;
struct Gated;

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
  simd().quantized.tile[row_index(x.bits)][quantized_index(w.bits)](a);
}

} // namespace

bool outruns_floats(int row_bits) {
  static const std::string_view name = simd().name;
  bool vnni = name == "avx512vnni" || name == "avx512bf16";
  return vnni || simd().quantized.split[row_index(row_bits)];
}

const float*
multiply_strip(const QuantizedRows& x, const PackedQuantized& w, int strip) {
  float* sums = scratch<TileSums>(kStripRows * kStripColumns);
  int tile = 2 * strip;
  bool both = w.columns > (tile + 1) * kQuantizedTile;
  multiply_tiles(
      x,
      w,
      tile,
      both ? std::optional(tile + 1) : std::nullopt,
      sums,
      sums + kQuantizedTile,
      kStripColumns);
  return sums;
}

void multiply(
    const QuantizedRows& x,
    int first_row,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue) {
  int strips = ceil_div(w.columns, kStripColumns);
  // Rows that stay in a thread's first-level cache beside a strip.
  parallel_for(ceil_div(x.rows, kStripRows) * strips, [&](int block) {
    int row = block / strips * kStripRows, strip = block % strips;
    int column = strip * kStripColumns;
    int columns = std::min(kStripColumns, w.columns - column);
    QuantizedRows rows = x.from_row(row);
    rows.rows = std::min(kStripRows, rows.rows);
    const float* sums = multiply_strip(rows, w, strip);
    epilogue(sums, kStripColumns, first_row + row, rows.rows, column, columns);
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
