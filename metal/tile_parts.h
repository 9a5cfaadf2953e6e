// Parts of rows for tiles of another type than the rows'.
#include "tiles.h"

// A lane's part of a row of float32, as T.
template <typename T> METAL_FUNC uint4 tile_part_as(const device float* row, int quarter) {
  float v[8];
  load_octet(row + 8 * quarter, v);
  return octet_bits<T>(v);
}

template <typename T> METAL_FUNC uint4 tile_part_as(const device T* row, int quarter) {
  return tile_part(row, quarter);
}
