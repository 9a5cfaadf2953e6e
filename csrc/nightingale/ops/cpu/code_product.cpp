#include "nightingale/ops/cpu/code_product.h"

#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct TileSums;
struct Gated;

// Tiles of a matrix that a thread takes at once.
constexpr int kTilesPerPiece = 2;
constexpr int kPieceColumns = kTilesPerPiece * kCodeTile;

// Tiles [first, first + count) by all rows. sums: [rows, stride]
void multiply_tiles(
    const CodeRows& x,
    const PackedCodes& w,
    int first,
    int count,
    float* sums,
    int64_t stride) {
  for (int i = 0; i < count; ++i) {
    CodeTileArgs a;
    a.x = x;
    a.tile = w.tile(first + i);
    a.y = sums + i * kCodeTile;
    a.y_stride = stride;
    simd().codes.tile[code_width(w.bits)](a);
  }
}

} // namespace

void multiply(
    const CodeRows& x,
    int first_row,
    const PackedCodes& w,
    const Finish& finish) {
  parallel_for(pieces(w.columns, kPieceColumns), [&](int piece) {
    int column = piece * kPieceColumns;
    int columns = std::min(kPieceColumns, w.columns - column);
    float* sums = scratch<TileSums>(int64_t(x.rows) * kPieceColumns);
    multiply_tiles(
        x,
        w,
        piece * kTilesPerPiece,
        pieces(columns, kCodeTile),
        sums,
        kPieceColumns);
    finish(sums, kPieceColumns, first_row, x.rows, column, columns);
  });
}

// A tile of the gate meets its tile of up while they are near.
void multiply_swiglu_tile(
    const CodeRows& x,
    const PackedCodes& w,
    int tile,
    float* y,
    int64_t stride) {
  int64_t size = int64_t(x.rows) * kCodeTile;
  float* gate = scratch<Gated>(2 * size);
  float* up = gate + size;
  multiply_tiles(x, w, tile, 1, gate, kCodeTile);
  multiply_tiles(x, w, w.columns / 2 / kCodeTile + tile, 1, up, kCodeTile);
  for (int r = 0; r < x.rows; ++r) {
    simd().silu_mul(
        gate + r * kCodeTile, up + r * kCodeTile, kCodeTile, y + r * stride);
  }
}

} // namespace nightingale::cpu
