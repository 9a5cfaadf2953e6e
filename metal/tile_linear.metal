// tile_linear: y = x · wᵀ and what follows a product: bias, activation, residual,
// in float32, then the cast to the result's type. For many rows of 16-bit numbers.
// x: [rows, K]; w: [N, K]; bias: [N]; residual: [rows, N] → y: [rows, N]
// A group makes DOWN by ACROSS patches, each by one SIMD group; both x and w are
// double-buffered in threadgroup memory, so that one barrier a step is enough. A sum's
// order is that of the columns, whatever the patches and the number of rows.
// Reference: reference::linear.
//
// inputs: x w bias residual extent
// outputs: y
#include "activations.h"
#include "tiles.h"

//: kernel
constexpr int SIMDS = THREADS / 32, STEP = 32 * DEPTH;
constexpr int HEIGHT = 16 * ROWS, WIDTH = 8 * COLUMNS; // of a patch
using XStep = SharedStep<HEIGHT * DOWN, DEPTH, THREADS>;
using WStep = SharedStep<WIDTH * ACROSS, DEPTH, THREADS>;
threadgroup uint4 x_steps[2 * XStep::PARTS], w_steps[2 * WStep::PARTS];
uint lane = thread_index_in_simdgroup;
int index = int(thread_index_in_threadgroup);
int row_count = extent[0], quarter = tile_quarter(lane), row = tile_row(lane);
int group_top = int(threadgroup_position_in_grid.y) * DOWN * HEIGHT;
int group_left = int(threadgroup_position_in_grid.x) * ACROSS * WIDTH;
auto xs = plain_rows<K>(x, row_count);
auto ws = plain_rows<K>(w, N);

for (int block = 0; block < DOWN * ACROSS; block += SIMDS) {
  int patch = block + int(simdgroup_index_in_threadgroup);
  int top = patch / ACROSS * HEIGHT, left = patch % ACROSS * WIDTH; // in the group
  float sums[ROWS][COLUMNS][4];
  uint4 held_x[XStep::HELD], held_w[WStep::HELD];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) clear_sums<COLUMNS>(sums[i]);
  XStep::load(xs, group_top, 0, index, held_x);
  WStep::load(ws, group_left, 0, index, held_w);
  XStep::leave(held_x, index, x_steps);
  WStep::leave(held_w, index, w_steps);
#pragma unroll 8
  for (int k = 0; k < K; k += STEP) {
    int side = k / STEP % 2;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (k + STEP < K) {
      XStep::load(xs, group_top, k + STEP, index, held_x);
      WStep::load(ws, group_left, k + STEP, index, held_w);
    }
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      uint4 upper[ROWS], lower[ROWS];
      auto x_step = x_steps + side * XStep::PARTS;
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        upper[i] = XStep::part(x_step, top + 16 * i + row, d, quarter);
        lower[i] = XStep::part(x_step, top + 16 * i + row + 8, d, quarter);
      }
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        uint4 columns =
            WStep::part(w_steps + side * WStep::PARTS, left + tile_column(j, row), d, quarter);
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
          multiply_tiles<T>(upper[i], lower[i], columns, lane, sums[i][j]);
      }
    }
    if (k + STEP < K) {
      XStep::leave(held_x, index, x_steps + (1 - side) * XStep::PARTS);
      WStep::leave(held_w, index, w_steps + (1 - side) * WStep::PARTS);
    }
  }
#pragma unroll
  for (int i = 0; i < 2 * ROWS * COLUMNS / 4; ++i) {
    int h = i / (COLUMNS / 4), b = i % (COLUMNS / 4);
    int at_row = group_top + top + 8 * h + row;
    int column = group_left + left + 32 * b + 8 * quarter;
    if (at_row >= row_count || (N % (WIDTH * ACROSS) != 0 && column >= N)) continue;
    long at = long(at_row) * N + column;
    float v[8], more[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = octet(sums[h / 2], b, h % 2, e);
    if (BIAS) {
      load_octet(bias + column, more);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] += more[e];
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = activated<ACTIVATION>(v[e]);
    if (RESIDUAL) {
      load_octet(residual + at, more);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = more[e] + v[e];
    }
    store_octet(y + at, v);
  }
  if (block + SIMDS < DOWN * ACROSS) threadgroup_barrier(mem_flags::mem_threadgroup);
}
