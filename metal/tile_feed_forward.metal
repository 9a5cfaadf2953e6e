// tile_feed_forward: what follows the attention in a transformer block: its output
// product with a residual, a layer norm, and two products with gelu between them,
// with a residual again:
//   inner = residual + (x · outᵀ + out_b)
//   sum = inner + (gelu(layer_norm(inner) · upᵀ + up_b) · downᵀ + down_b)
// and with NEXT the norm that the next block begins with: normed = layer_norm(sum).
// x: [rows, K]; residual: [rows, N]; out: [N, K]; up: [F, N]; down: [N, F]; others:
// [N], up_b: [F] → sum, normed: [rows, N]
// A group makes 16 whole rows. What is between two products stays in threadgroup
// memory, N of the F columns at a time, double-buffered.
// Reference: reference::linear and reference::layer_norm.
//
// inputs: x out out_b residual norm_w norm_b up up_b down down_b extent next_w next_b
// outputs: sum normed
#include "activations.h"
#include "tile_rows.h"

// 16 rows of a result as rows of the next product: 32 columns of all of them, then
// the next 32.
struct SharedRows {
  threadgroup const uint4* parts;

  METAL_FUNC uint4 part(int row, int column, int quarter) const thread {
    return parts[(column / 32 * 16 + row) * 4 + quarter];
  }
};

METAL_FUNC SharedRows shared_rows(threadgroup const uint4* parts) {
  SharedRows rows;
  rows.parts = parts;
  return rows;
}

template <typename T, int OWN, int COLUMNS>
METAL_FUNC void share_tile_rows(
    threadgroup uint4* rows, int first, uint lane, thread const float (*v)[COLUMNS][4]) {
#pragma unroll
  for (int i = 0; i < 2 * OWN * COLUMNS / 4; ++i) {
    int p = i / 2 / (COLUMNS / 4), j = i / 2 % (COLUMNS / 4), h = i % 2;
    int block = (first + p) * (COLUMNS / 4) + j; // of 32 columns
    float eight[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) eight[e] = octet(v[p], j, h, e);
    rows[(block * 16 + tile_row(lane) + 8 * h) * 4 + tile_quarter(lane)] = octet_bits<T>(eight);
  }
}

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int PATCHES = N / (8 * COLUMNS), OWN = PATCHES / SIMDS;
threadgroup float partial[PATCHES * 16], squares[PATCHES * 16];
threadgroup uint4 inner[2 * N], hidden[2 * 2 * N];
uint lane = thread_index_in_simdgroup;
int first = int(simdgroup_index_in_threadgroup) * OWN;
int row_count = extent[0], top = int(threadgroup_position_in_grid.x) * 16;

float sums[OWN][COLUMNS][4], v[OWN][COLUMNS][4];
clear_tile_rows<OWN, COLUMNS>(sums);
add_tile_product<OWN, COLUMNS, DEPTH, K>(plain_rows<K>(x, row_count), out, top, first, lane, sums);
add_columns<1, OWN, COLUMNS>(out_b, first, lane, sums);
take_tile_rows<N, 1, OWN, COLUMNS, true>(residual, top, row_count, first, lane, sums);
#pragma unroll
for (int i = 0; i < OWN * COLUMNS * 4; ++i) {
  int p = i / 4 / COLUMNS, j = i / 4 % COLUMNS, e = i % 4;
  v[p][j][e] = sums[p][j][e];
}
norm_tile_rows<N, 1, OWN, COLUMNS>(
    norm_w, norm_b, as_type<float>(EPS), first, lane, partial, squares, v);
share_tile_rows<T, OWN, COLUMNS>(inner, first, lane, v);
threadgroup_barrier(mem_flags::mem_threadgroup);

int side = 0;
for (int begin = 0; begin < F; begin += N) {
  clear_tile_rows<OWN, COLUMNS>(v);
  add_tile_product<OWN, COLUMNS, DEPTH, N>(
      shared_rows(inner), up + long(begin) * N, 0, first, lane, v);
  add_columns<1, OWN, COLUMNS>(up_b + begin, first, lane, v);
#pragma unroll
  for (int i = 0; i < OWN * COLUMNS * 4; ++i) {
    int p = i / 4 / COLUMNS, j = i / 4 % COLUMNS, e = i % 4;
    v[p][j][e] = coarse_gelu(v[p][j][e]);
  }
  share_tile_rows<T, OWN, COLUMNS>(hidden + side * 2 * N, first, lane, v);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  add_tile_product<OWN, COLUMNS, DEPTH, N, F>(
      shared_rows(hidden + side * 2 * N), down + begin, 0, first, lane, sums);
  side = 1 - side;
}
add_columns<1, OWN, COLUMNS>(down_b, first, lane, sums);
store_tile_rows<N, 1, OWN, COLUMNS>(sum, top, row_count, first, lane, sums);
if (NEXT) {
  norm_tile_rows<N, 1, OWN, COLUMNS>(
      next_w, next_b, as_type<float>(NEXT_EPS), first, lane, partial, squares, sums);
  store_tile_rows<N, 1, OWN, COLUMNS>(normed, top, row_count, first, lane, sums);
}
