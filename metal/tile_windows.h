// The rows that a convolution multiplies, as tiles read them, without laying them
// side by side: row r is the rows r + k * dilation - pad of `before` and x, one
// behind the other, for every tap k; zeros beyond their ends.
#include "tile_parts.h"

// before: [split, C]; x: [count - split, C]
template <typename T, int C, typename X> struct WindowRows {
  const device X* x;
  const device X* before;
  int split, count, dilation, pad;

  METAL_FUNC uint4 part(int row, int column, int quarter) const thread {
    int from = row + column / C * dilation - pad, c = column % C;
    int at = min(max(from, 0), count - 1); // so that lanes stay together
    bool old = at < split; // chosen before loading: loads in branches would wait for each other
    const device X* rows = old ? before : x;
    uint4 part = tile_part_as<T>(rows + ((old ? at : at - split) * C + c), quarter);
    if (from != at) part.x = part.y = part.z = part.w = 0u;
    return part;
  }
};
