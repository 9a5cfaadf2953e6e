// tile_linear: y = x · wᵀ and what follows a product: bias, activation, residual,
// in float32, then the cast to the result's type. For many rows of 16-bit numbers.
// x: [rows, K]; w: [N, K]; bias: [N]; residual: [rows, N] → y: [rows, N]
// A group makes DOWN by ACROSS patches, each by one SIMD group. A sum's order is
// that of the columns, whatever the patches and the number of rows.
// Reference: reference::linear.
//
// inputs: x w bias residual extent
// outputs: y
#include "activations.h"
#include "tiles.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int HEIGHT = 16 * ROWS, WIDTH = 8 * COLUMNS; // of a patch
uint lane = thread_index_in_simdgroup;
int row_count = extent[0], quarter = tile_quarter(lane);

for (int patch = int(simdgroup_index_in_threadgroup); patch < DOWN * ACROSS; patch += SIMDS) {
  int top = (int(threadgroup_position_in_grid.y) * DOWN + patch / ACROSS) * HEIGHT;
  int left = (int(threadgroup_position_in_grid.x) * ACROSS + patch % ACROSS) * WIDTH;
  if (top >= row_count) break;
  float sums[ROWS][COLUMNS][4];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) clear_sums<COLUMNS>(sums[i]);
  Patch<ROWS, COLUMNS, DEPTH, K>::add_product(
      plain_rows<K>(x, row_count), w + long(left) * K, top, lane, sums);
#pragma unroll
  for (int i = 0; i < 2 * ROWS; ++i) {
    int row = top + 8 * i + tile_row(lane);
    if (row >= row_count) continue;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      int column = left + 8 * j + 2 * quarter;
      long at = long(row) * N + column;
      float v[2], more[2];
      if (RESIDUAL) load_pair(residual + at, more);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float u = sums[i / 2][j][i % 2 * 2 + e];
        if (BIAS) u += float(bias[column + e]);
        u = activated<ACTIVATION>(u);
        v[e] = RESIDUAL ? more[e] + u : u;
      }
      store_pair(y + at, v);
    }
  }
}
