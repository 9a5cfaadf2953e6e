// Rows of N numbers that lie with all SIMD groups of a threadgroup: 16 rows as
// sums of tiles, OWN patches of 8 * COLUMNS columns with each of them, from patch
// `first` on.
#include "tiles.h"

// v += x · wᵀ over K columns, where x is the rows from `top` on. w: [N, STRIDE],
// from the first of its columns on.
template <int OWN, int COLUMNS, int DEPTH, int K, int STRIDE = K, typename X, typename T>
METAL_FUNC void add_tile_product(
    X x, const device T* w, int top, int first, uint lane, thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int p = 0; p < OWN; ++p) {
    Patch<1, COLUMNS, DEPTH, K, STRIDE>::add_product(
        x, w + long(first + p) * (8 * COLUMNS * STRIDE), top, lane, v + p);
  }
}

// v = x · wᵀ, likewise.
template <int OWN, int COLUMNS, int DEPTH, int K, typename X, typename T>
METAL_FUNC void tile_product(
    X x, const device T* w, int top, int first, uint lane, thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int p = 0; p < OWN; ++p) clear_sums<COLUMNS>(v[p]);
  add_tile_product<OWN, COLUMNS, DEPTH, K>(x, w, top, first, lane, v);
}

// What every patch has left for a lane's two rows, added up in their order.
template <int PATCHES>
METAL_FUNC void take_row_sums(threadgroup const float* partial, int row, thread float* sums) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = 0.0f;
    for (int p = 0; p < PATCHES; ++p) sum += partial[p * 16 + row + 8 * h];
    sums[h] = sum;
  }
}

// v becomes layer_norm(v, w, b): the mean first, then the squares about it.
// `partial` and `squares` have 16 places for each patch of the row.
template <int N, int OWN, int COLUMNS, typename W, typename B>
METAL_FUNC void norm_tile_rows(
    const device W* w, const device B* b, float eps, int first, uint lane,
    threadgroup float* partial, threadgroup float* squares, thread float (*v)[COLUMNS][4]) {
  constexpr int PATCHES = N / (8 * COLUMNS);
  int row = tile_row(lane), quarter = tile_quarter(lane);
  float mean[2], scale[2];
#pragma unroll
  for (int i = 0; i < 2 * OWN; ++i) {
    int p = i / 2, h = i % 2;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) sum += v[p][j][2 * h] + v[p][j][2 * h + 1];
    sum = tile_row_sum(sum);
    if (quarter == 0) partial[(first + p) * 16 + row + 8 * h] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  take_row_sums<PATCHES>(partial, row, mean);
  mean[0] /= float(N);
  mean[1] /= float(N);
#pragma unroll
  for (int i = 0; i < 2 * OWN; ++i) {
    int p = i / 2, h = i % 2;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 2 * COLUMNS; ++j) {
      float d = v[p][j / 2][2 * h + j % 2] - mean[h];
      sum = fma(d, d, sum);
    }
    sum = tile_row_sum(sum);
    if (quarter == 0) squares[(first + p) * 16 + row + 8 * h] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  take_row_sums<PATCHES>(squares, row, scale);
  scale[0] = precise::rsqrt(scale[0] / float(N) + eps);
  scale[1] = precise::rsqrt(scale[1] / float(N) + eps);
#pragma unroll
  for (int p = 0; p < OWN; ++p) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = ((first + p) * COLUMNS + j) * 8 + 2 * quarter;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float normed = (v[p][j][e] - mean[e / 2]) * scale[e / 2];
        v[p][j][e] = fma(normed, float(w[column + e % 2]), float(b[column + e % 2]));
      }
    }
  }
}

// v += w, one number a column.
template <int OWN, int COLUMNS, typename W>
METAL_FUNC void add_columns(
    const device W* w, int first, uint lane, thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int p = 0; p < OWN; ++p) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = ((first + p) * COLUMNS + j) * 8 + 2 * tile_quarter(lane);
#pragma unroll
      for (int e = 0; e < 4; ++e) v[p][j][e] += float(w[column + e % 2]);
    }
  }
}

// v += rows [top, top + 16) of x; those beyond the last of `rows` are read as it.
template <int N, int OWN, int COLUMNS, typename X>
METAL_FUNC void add_tile_rows(
    const device X* x, int top, int rows, int first, uint lane, thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < 2 * OWN; ++i) {
    int p = i / 2, h = i % 2, row = min(top + tile_row(lane) + 8 * h, rows - 1);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = ((first + p) * COLUMNS + j) * 8 + 2 * tile_quarter(lane);
      float more[2];
      load_pair(x + (long(row) * N + column), more);
#pragma unroll
      for (int e = 0; e < 2; ++e) v[p][j][2 * h + e] = more[e] + v[p][j][2 * h + e];
    }
  }
}

// Rows [top, top + 16) of y, as far as there are `rows` of them.
template <int N, int OWN, int COLUMNS, typename T>
METAL_FUNC void store_tile_rows(
    device T* y, int top, int rows, int first, uint lane, thread const float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < 2 * OWN; ++i) {
    int p = i / 2, h = i % 2, row = top + tile_row(lane) + 8 * h;
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = ((first + p) * COLUMNS + j) * 8 + 2 * tile_quarter(lane);
      store_pair(y + (long(row) * N + column), v[p][j] + 2 * h);
    }
  }
}
