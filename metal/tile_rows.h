// Rows of N numbers that lie with all SIMD groups of a threadgroup: 16 * ROWS
// rows as sums of tiles, OWN patches of 8 * COLUMNS columns with each of them,
// from patch `first` on. v[p * ROWS + i] is the i-th tile of the p-th patch.
#include "tiles.h"

// v += x · wᵀ over K columns, where x is the 16 rows from `top` on. w: [N, STRIDE],
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

template <int TILES, int COLUMNS> METAL_FUNC void clear_tile_rows(thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < TILES; ++i) clear_sums<COLUMNS>(v[i]);
}

// v += x · wᵀ, where x, which all SIMD groups need, is double-buffered in
// threadgroup memory: `room` is for 2 * 16 * ROWS * 4 * DEPTH parts. Columns of w,
// which each needs for itself, are not. AHEAD steps are loaded before they are
// needed.
template <
    int ROWS, int OWN, int COLUMNS, int DEPTH, int AHEAD, int K, int THREADS, typename X,
    typename T>
METAL_FUNC void add_shared_product(
    X x, const device T* w, int top, int first, int index, threadgroup uint4* room,
    thread float (*v)[COLUMNS][4]) {
  using XStep = SharedStep<16 * ROWS, DEPTH, THREADS>;
  constexpr int STEP = 32 * DEPTH, STEPS = K / STEP;
  uint lane = uint(index) % 32u;
  int row = tile_row(lane), quarter = tile_quarter(lane);
  auto own = w + long(first) * (8 * COLUMNS * K);
  uint4 held[AHEAD][XStep::HELD], columns[AHEAD + 1][DEPTH][OWN * COLUMNS];
#pragma unroll
  for (int s = -AHEAD; s < STEPS; ++s) {
    int next = s + AHEAD;
    if (s >= 0) threadgroup_barrier(mem_flags::mem_threadgroup);
    if (next < STEPS) {
      XStep::load(x, top, next * STEP, index, held[next % AHEAD]);
#pragma unroll
      for (int i = 0; i < DEPTH * OWN * COLUMNS; ++i) {
        int d = i / (OWN * COLUMNS), j = i % (OWN * COLUMNS);
        columns[next % (AHEAD + 1)][d][j] =
            tile_part(own + (tile_column(j, row) * K + next * STEP + 32 * d), quarter);
      }
    }
    if (s >= 0) {
      auto step = room + s % 2 * XStep::PARTS;
#pragma unroll
      for (int i = 0; i < DEPTH * ROWS; ++i) {
        int d = i / ROWS, r = i % ROWS;
        uint4 upper = XStep::part(step, 16 * r + row, d, quarter);
        uint4 lower = XStep::part(step, 16 * r + row + 8, d, quarter);
#pragma unroll
        for (int j = 0; j < OWN * COLUMNS; ++j) {
          multiply_tiles<T>(
              upper, lower, columns[s % (AHEAD + 1)][d][j], lane,
              v[j / COLUMNS * ROWS + r][j % COLUMNS]);
        }
      }
    }
    if (s >= -1 && s + 1 < STEPS)
      XStep::leave(held[(s + 1) % AHEAD], index, room + (s + 1) % 2 * XStep::PARTS);
  }
}

// What every patch has left for a lane's rows, added up in their order.
template <int ROWS, int PATCHES>
METAL_FUNC void take_row_sums(threadgroup const float* partial, int row, thread float* sums) {
#pragma unroll
  for (int h = 0; h < 2 * ROWS; ++h) {
    float sum = 0.0f;
    for (int p = 0; p < PATCHES; ++p) sum += partial[p * 16 * ROWS + row + 8 * h];
    sums[h] = sum;
  }
}

// v becomes layer_norm(v, w, b): the mean first, then the squares about it.
// `partial` and `squares` have 16 * ROWS places for each patch of the row.
template <int N, int ROWS, int OWN, int COLUMNS, typename W, typename B>
METAL_FUNC void norm_tile_rows(
    const device W* w, const device B* b, float eps, int first, uint lane,
    threadgroup float* partial, threadgroup float* squares, thread float (*v)[COLUMNS][4]) {
  constexpr int PATCHES = N / (8 * COLUMNS), HALVES = 2 * ROWS;
  int row = tile_row(lane), quarter = tile_quarter(lane);
  float mean[HALVES], scale[HALVES];
#pragma unroll
  for (int i = 0; i < HALVES * OWN; ++i) {
    int p = i / HALVES, h = i % HALVES, e = 2 * (h % 2);
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) sum += v[i / 2][j][e] + v[i / 2][j][e + 1];
    sum = tile_row_sum(sum);
    if (quarter == 0) partial[(first + p) * 16 * ROWS + row + 8 * h] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  take_row_sums<ROWS, PATCHES>(partial, row, mean);
#pragma unroll
  for (int h = 0; h < HALVES; ++h) mean[h] /= float(N);
#pragma unroll
  for (int i = 0; i < HALVES * OWN; ++i) {
    int p = i / HALVES, h = i % HALVES;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 2 * COLUMNS; ++j) {
      float d = v[i / 2][j / 2][2 * (h % 2) + j % 2] - mean[h];
      sum = fma(d, d, sum);
    }
    sum = tile_row_sum(sum);
    if (quarter == 0) squares[(first + p) * 16 * ROWS + row + 8 * h] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  take_row_sums<ROWS, PATCHES>(squares, row, scale);
#pragma unroll
  for (int h = 0; h < HALVES; ++h) scale[h] = precise::rsqrt(scale[h] / float(N) + eps);
#pragma unroll
  for (int i = 0; i < OWN * COLUMNS / 4; ++i) {
    int p = i / (COLUMNS / 4), j = i % (COLUMNS / 4);
    int column = (first + p) * COLUMNS * 8 + 32 * j + 8 * quarter;
    float by[8], shift[8];
    load_octet(w + column, by);
    load_octet(b + column, shift);
#pragma unroll
    for (int k = 0; k < 8 * HALVES; ++k) {
      int h = k / 8, e = k % 8;
      thread float* at = v[p * ROWS + h / 2][4 * j + e / 2] + 2 * (h % 2) + e % 2;
      *at = fma((*at - mean[h]) * scale[h], by[e], shift[e]);
    }
  }
}

// v += w, one number a column.
template <int ROWS, int OWN, int COLUMNS, typename W>
METAL_FUNC void add_columns(
    const device W* w, int first, uint lane, thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < OWN * COLUMNS / 4; ++i) {
    int p = i / (COLUMNS / 4), j = i % (COLUMNS / 4);
    float more[8];
    load_octet(w + ((first + p) * COLUMNS * 8 + 32 * j + 8 * tile_quarter(lane)), more);
#pragma unroll
    for (int k = 0; k < 16 * ROWS; ++k) {
      int h = k / 8, e = k % 8;
      v[p * ROWS + h / 2][4 * j + e / 2][2 * (h % 2) + e % 2] += more[e];
    }
  }
}

// v becomes rows [top, top + 16 * ROWS) of x, or with ADD the sum of them and
// v; those beyond the last of `rows` are read as it.
template <int N, int ROWS, int OWN, int COLUMNS, bool ADD, typename X>
METAL_FUNC void take_tile_rows(
    const device X* x, int top, int rows, int first, uint lane, thread float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < 2 * ROWS * OWN; ++i) {
    int p = i / (2 * ROWS), h = i % (2 * ROWS), row = min(top + tile_row(lane) + 8 * h, rows - 1);
#pragma unroll
    for (int j = 0; j < COLUMNS / 4; ++j) {
      int column = (first + p) * COLUMNS * 8 + 32 * j + 8 * tile_quarter(lane);
      float more[8];
      load_octet(x + (long(row) * N + column), more);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        thread float* at = v[i / 2][4 * j + e / 2] + 2 * (i % 2) + e % 2;
        *at = ADD ? more[e] + *at : more[e];
      }
    }
  }
}

// Rows [top, top + 16 * ROWS) of y, as far as there are `rows` of them.
template <int N, int ROWS, int OWN, int COLUMNS, typename T>
METAL_FUNC void store_tile_rows(
    device T* y, int top, int rows, int first, uint lane, thread const float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < 2 * ROWS * OWN; ++i) {
    int p = i / (2 * ROWS), h = i % (2 * ROWS), row = top + tile_row(lane) + 8 * h;
    if (row >= rows) continue;
#pragma unroll
    for (int j = 0; j < COLUMNS / 4; ++j) {
      int column = (first + p) * COLUMNS * 8 + 32 * j + 8 * tile_quarter(lane);
      float eight[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) eight[e] = octet(v[i / 2], j, i % 2, e);
      store_octet(y + (long(row) * N + column), eight);
    }
  }
}
