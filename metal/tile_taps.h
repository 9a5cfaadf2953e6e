// The rows that a causal convolution of TAPS rows multiplies, as tiles read them,
// without laying them side by side: row t is the rows t - TAPS + 1 to t of x, and
// of skip beside it; zeros before the first.
#include "tiles.h"

// A lane's part of a row of float32, as T.
template <typename T> METAL_FUNC uint4 tile_part_as(const device float* row, int quarter) {
  float v[8];
  load4(row + 8 * quarter, v);
  load4(row + (8 * quarter + 4), v + 4);
  uint4 part;
  part.x = half_bits<T>(v[0], v[1]);
  part.y = half_bits<T>(v[2], v[3]);
  part.z = half_bits<T>(v[4], v[5]);
  part.w = half_bits<T>(v[6], v[7]);
  return part;
}

template <typename T> METAL_FUNC uint4 tile_part_as(const device T* row, int quarter) {
  return tile_part(row, quarter);
}

// x: [rows, CX]; skip: [rows, CS], of one batch row
template <typename T, int TAPS, int CX, int CS, typename X, typename S> struct TapRows {
  const device X* x;
  const device S* skip;
  int rows;

  METAL_FUNC uint4 part(int row, int column, int quarter) const {
    constexpr int C = CX + CS;
    int from = min(row, rows - 1) - (TAPS - 1 - column / C), c = column % C;
    int at = max(from, 0); // so that lanes stay together
    uint4 part = CS == 0 || c < CX ? tile_part_as<T>(x + (at * CX + c), quarter)
                                   : tile_part_as<T>(skip + (at * CS + (c - CX)), quarter);
    if (from < 0) part.x = part.y = part.z = part.w = 0u;
    return part;
  }
};

template <typename T, int TAPS, int CX, int CS, typename X, typename S>
METAL_FUNC TapRows<T, TAPS, CX, CS, X, S> tap_rows(
    const device X* x, const device S* skip, int rows) {
  TapRows<T, TAPS, CX, CS, X, S> taps;
  taps.x = x;
  taps.skip = skip;
  taps.rows = rows;
  return taps;
}
