// tile_linear_norm: a product with a residual, and the norm that the next product
// begins with: sum = residual + (x · wᵀ + bias), normed = layer_norm(sum).
// x: [rows, K]; w: [N, K]; bias, norm_w, norm_b: [N]; residual: [rows, N]
//   → sum, normed: [rows, N]
// A group makes 16 whole rows, its SIMD groups a part of the columns each, so that
// a row's mean and variance need two barriers.
// Twin: graph::linear, then graph::layer_norm.
//
// inputs: x w bias residual norm_w norm_b extent
// outputs: sum normed
#include "tiles.h"

// The sums of 16 rows over all patches, each lane's for its own two rows.
template <int PATCHES>
METAL_FUNC void take_row_sums(threadgroup const float* partial, int row, thread float* sums) {
#pragma unroll
  for (int half_row = 0; half_row < 2; ++half_row) {
    float sum = 0.0f;
    for (int p = 0; p < PATCHES; ++p) sum += partial[p * 16 + row + 8 * half_row];
    sums[half_row] = sum;
  }
}

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int WIDTH = 8 * COLUMNS; // of a patch
constexpr int PATCHES = N / WIDTH, OWN = PATCHES / SIMDS; // of all and a SIMD group
threadgroup float partial[PATCHES * 16], squares[PATCHES * 16];
uint lane = thread_index_in_simdgroup;
int first = int(simdgroup_index_in_threadgroup) * OWN;
int row_count = extent[0], top = int(threadgroup_position_in_grid.x) * 16;
int row = tile_row(lane), quarter = tile_quarter(lane);

float v[OWN][COLUMNS][4];
#pragma unroll
for (int p = 0; p < OWN; ++p) {
  clear_sums<COLUMNS>(v[p]);
  Patch<1, COLUMNS, DEPTH, K>::add_product(
      x, w + long((first + p) * WIDTH) * K, top, row_count, lane, v + p);
}

#pragma unroll
for (int p = 0; p < OWN; ++p) {
  float total[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int at_row = top + row + 8 * h;
    total[h] = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = (first + p) * WIDTH + 8 * j + 2 * quarter;
      long at = long(min(at_row, row_count - 1)) * N + column;
      float more[2];
      load_pair(residual + at, more);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float u = more[e] + (v[p][j][2 * h + e] + float(bias[column + e]));
        v[p][j][2 * h + e] = u;
        total[h] += u;
      }
      if (at_row < row_count) store_pair(sum + at, v[p][j] + 2 * h);
    }
    total[h] = tile_row_sum(total[h]);
    if (quarter == 0) partial[(first + p) * 16 + row + 8 * h] = total[h];
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);

float mean[2], scale[2];
take_row_sums<PATCHES>(partial, row, mean);
#pragma unroll
for (int h = 0; h < 2; ++h) mean[h] /= float(N);
#pragma unroll
for (int p = 0; p < OWN; ++p) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float d = v[p][j][2 * h + e] - mean[h];
        total = fma(d, d, total);
      }
    }
    total = tile_row_sum(total);
    if (quarter == 0) squares[(first + p) * 16 + row + 8 * h] = total;
  }
}
threadgroup_barrier(mem_flags::mem_threadgroup);

take_row_sums<PATCHES>(squares, row, scale);
#pragma unroll
for (int h = 0; h < 2; ++h) {
  int at_row = top + row + 8 * h;
  float by = precise::rsqrt(scale[h] / float(N) + as_type<float>(EPS));
#pragma unroll
  for (int p = 0; p < OWN; ++p) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = (first + p) * WIDTH + 8 * j + 2 * quarter;
      float y[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        y[e] = fma(
            (v[p][j][2 * h + e] - mean[h]) * by, float(norm_w[column + e]),
            float(norm_b[column + e]));
      }
      if (at_row < row_count) store_pair(normed + long(at_row) * N + column, y);
    }
  }
}
