// The rows that a causal convolution of TAPS rows multiplies, as tiles read them,
// without laying them side by side: row t is the rows t - TAPS + 1 to t of x, and
// of skip beside it; zeros before the first.
#include "tile_parts.h"

// x: [rows, CX]; skip: [rows, CS], of one batch row
template <typename T, int TAPS, int CX, int CS, typename X, typename S> struct TapRows {
  const device X* x;
  const device S* skip;
  int rows;

  METAL_FUNC uint4 part(int row, int column, int quarter) const thread {
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
