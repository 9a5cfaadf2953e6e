#include "nightingale/backends/cpu/code_product.h"

#include <optional>
#include <string_view>

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct TileSums;
struct Gated;

// A thread takes two tiles of a matrix at once, and rows that stay in its
// first-level cache beside them.
constexpr int kPieceColumns = 2 * kCodeTile;
constexpr int kPieceRows = 40;

// A tile, or two of them, by all rows. sums: [rows, stride] of each
void multiply_tiles(
    const CodeRows& x,
    const PackedCodes& w,
    int first,
    std::optional<int> second,
    float* first_sums,
    float* second_sums,
    int64_t stride) {
  CodeTileArgs a{
      .x = x,
      .tiles = {w.tile(first), second ? w.tile(*second) : nullptr},
      .y = {first_sums, second_sums},
      .y_stride = stride};
  simd().codes.tile[code_width(w.bits)](a);
}

} // namespace

bool outruns_floats() {
  static const bool vnni = std::string_view(simd().name) == "avx512vnni";
  return vnni;
}

void multiply(
    const CodeRows& x,
    int first_row,
    const PackedCodes& w,
    const Finish& finish) {
  int strips = pieces(w.columns, kPieceColumns);
  parallel_for(pieces(x.rows, kPieceRows) * strips, [&](int piece) {
    int row = piece / strips * kPieceRows, tile = piece % strips * 2;
    int column = tile * kCodeTile;
    int columns = std::min(kPieceColumns, w.columns - column);
    CodeRows rows = x.from_row(row);
    rows.rows = std::min(kPieceRows, rows.rows);
    float* sums = scratch<TileSums>(kPieceRows * kPieceColumns);
    bool both = columns > kCodeTile;
    multiply_tiles(
        rows,
        w,
        tile,
        both ? std::optional(tile + 1) : std::nullopt,
        sums,
        sums + kCodeTile,
        kPieceColumns);
    finish(sums, kPieceColumns, first_row + row, rows.rows, column, columns);
  });
}

void multiply_swiglu_tile(
    const CodeRows& x,
    const PackedCodes& w,
    int tile,
    float* y,
    int64_t stride) {
  int64_t size = int64_t(x.rows) * kCodeTile;
  float* gate = scratch<Gated>(2 * size);
  float* up = gate + size;
  int up_tile = w.columns / 2 / kCodeTile + tile;
  multiply_tiles(x, w, tile, up_tile, gate, up, kCodeTile);
  for (int r = 0; r < x.rows; ++r) {
    simd().silu_mul(
        gate + r * kCodeTile, up + r * kCodeTile, kCodeTile, y + r * stride);
  }
}

} // namespace nightingale::cpu
