// tile_resnet_sum: the second half of a residual block, and the norm that the next
// product begins with: sum = mish(layer_norm(conv + bias)) + (residual_w · x +
// residual_b), normed = layer_norm(sum), where conv is a causal convolution of
// three rows of h, and x has skip beside it.
// h: [B, T, N]; x: [B, T, CX]; skip: [B, T, CS]; w: [N, 3 * N]; residual_w:
// [N, CX + CS]; others: [N] → sum, normed: [B, T, N]
// A group makes 16 * ROWS whole rows.
// Reference: ops::resnet on the CPU.
//
// inputs: h w bias norm_w norm_b x residual_w residual_b next_w next_b extent skip
// outputs: sum normed
#include "activations.h"
#include "tile_rows.h"
#include "tile_taps.h"

//: kernel
constexpr int SIMDS = THREADS / 32, C = CX + CS;
constexpr int PATCHES = N / (8 * COLUMNS), OWN = PATCHES / SIMDS;
threadgroup uint4 room[2 * 16 * ROWS * 4 * DEPTH];
threadgroup float partial[PATCHES * 16 * ROWS], squares[PATCHES * 16 * ROWS];
uint lane = thread_index_in_simdgroup;
int index = int(thread_index_in_threadgroup);
int first = int(simdgroup_index_in_threadgroup) * OWN;
int frames = extent[0], top = int(threadgroup_position_in_grid.x) * 16 * ROWS;
long batch = long(threadgroup_position_in_grid.y) * frames;
auto hidden = tap_rows<T, 3, N, 0>(h + batch * N, h, frames);
auto rows = tap_rows<T, 1, CX, CS>(x + batch * CX, skip + batch * CS, frames);
float v[ROWS * OWN][COLUMNS][4], more[ROWS * OWN][COLUMNS][4];
clear_tile_rows<ROWS * OWN, COLUMNS>(v);
clear_tile_rows<ROWS * OWN, COLUMNS>(more);
add_shared_product<ROWS, OWN, COLUMNS, DEPTH, AHEAD, 3 * N, THREADS>(
    hidden, w, top, first, index, room, v);
threadgroup_barrier(mem_flags::mem_threadgroup);
add_shared_product<ROWS, OWN, COLUMNS, DEPTH, AHEAD, C, THREADS>(
    rows, residual_w, top, first, index, room, more);
add_columns<ROWS, OWN, COLUMNS>(bias, first, lane, v);
add_columns<ROWS, OWN, COLUMNS>(residual_b, first, lane, more);
norm_tile_rows<N, ROWS, OWN, COLUMNS>(
    norm_w, norm_b, as_type<float>(EPS), first, lane, partial, squares, v);
#pragma unroll
for (int i = 0; i < ROWS * OWN * COLUMNS * 4; ++i) {
  int r = i / 4 / COLUMNS, j = i / 4 % COLUMNS, e = i % 4;
  v[r][j][e] = mish(v[r][j][e]) + more[r][j][e];
}
store_tile_rows<N, ROWS, OWN, COLUMNS>(sum + batch * N, top, frames, first, lane, v);
norm_tile_rows<N, ROWS, OWN, COLUMNS>(
    next_w, next_b, as_type<float>(NEXT_EPS), first, lane, partial, squares, v);
store_tile_rows<N, ROWS, OWN, COLUMNS>(normed + batch * N, top, frames, first, lane, v);
