// Parts of rows for tiles of another type than the rows'.
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
