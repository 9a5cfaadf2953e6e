// What kernels that use tiles.h also see before it on Metal.
#include <metal_simdgroup_matrix>

// What tiles.h stands on. A lane holds the two neighbours of an 8 x 8 matrix that
// MLX's own products give it (steel/gemm/mma.h).
METAL_FUNC int tile_row(uint lane) { return int((lane >> 2 & 4u) + (lane >> 1 & 3u)); }
METAL_FUNC int tile_quarter(uint lane) { return int((lane >> 2 & 2u) + (lane & 1u)); }
METAL_FUNC uint tile_far_lane() { return 8u; }
METAL_FUNC ushort tile_lane(uint row, uint quarter) {
  return ushort((quarter & 1u) | (row & 3u) << 1 | (quarter & 2u) << 2 | (row & 4u) << 2);
}

template <typename T> METAL_FUNC float tile_value(uint pair, bool second) {
  return float(as_type<T>(ushort(second ? pair >> 16 : pair & 0xffffu)));
}

// Columns come with a lane in a row of w; the matrix wants w transposed, so lanes
// read each other's.
template <typename T>
METAL_FUNC void multiply_tiles(
    uint4 top, uint4 bottom, uint4 columns, uint lane, thread float* sums) {
  uint row = uint(tile_row(lane)), column = 2u * uint(tile_quarter(lane));
  simdgroup_matrix<float, 8, 8> a, b, upper, lower;
  upper.thread_elements()[0] = sums[0];
  upper.thread_elements()[1] = sums[1];
  lower.thread_elements()[0] = sums[2];
  lower.thread_elements()[1] = sums[3];
  for (int j = 0; j < 4; ++j) {
    for (uint e = 0; e < 2; ++e) {
      uint pair = simd_shuffle(columns[j], tile_lane(column + e, row >> 1));
      b.thread_elements()[e] = tile_value<T>(pair, (row & 1u) != 0u);
      a.thread_elements()[e] = tile_value<T>(top[j], e != 0u);
    }
    simdgroup_multiply_accumulate(upper, a, b, upper);
    for (uint e = 0; e < 2; ++e) a.thread_elements()[e] = tile_value<T>(bottom[j], e != 0u);
    simdgroup_multiply_accumulate(lower, a, b, lower);
  }
  sums[0] = upper.thread_elements()[0];
  sums[1] = upper.thread_elements()[1];
  sums[2] = lower.thread_elements()[0];
  sums[3] = lower.thread_elements()[1];
}
