// tile_conv_norm: y = mish(layer_norm(conv + bias)) (+ shift), where conv is a
// causal convolution of three rows of x, and of skip beside it.
// x: [B, T, CX]; skip: [B, T, CS]; w: [N, 3 * (CX + CS)]; shift: [B / SEQUENCES, N];
// others: [N] → y: [B, T, N]
// A group makes 16 * ROWS whole rows. `order` is not read: it is of whoever wrote x in
// place.
// Reference: mx::concatenate of shifted rows, reference::linear, then reference::norm_mish.
//
// inputs: x w bias norm_w norm_b extent skip shift order
// outputs: y
#include "activations.h"
#include "tile_rows.h"
#include "tile_taps.h"

//: kernel
constexpr int SIMDS = THREADS / 32, K = 3 * (CX + CS);
constexpr int PATCHES = N / (8 * COLUMNS), OWN = PATCHES / SIMDS;
threadgroup uint4 room[2 * 16 * ROWS * 4 * DEPTH];
threadgroup float partial[PATCHES * 16 * ROWS], squares[PATCHES * 16 * ROWS];
uint lane = thread_index_in_simdgroup;
int index = int(thread_index_in_threadgroup);
int first = int(simdgroup_index_in_threadgroup) * OWN;
int frames = extent[0], top = int(threadgroup_position_in_grid.x) * 16 * ROWS;
long batch = long(threadgroup_position_in_grid.y) * frames;
auto rows = tap_rows<T, 3, CX, CS>(x + batch * CX, skip + batch * CS, frames);
float v[ROWS * OWN][COLUMNS][4];
clear_tile_rows<ROWS * OWN, COLUMNS>(v);
add_shared_product<ROWS, OWN, COLUMNS, DEPTH, AHEAD, K, THREADS>(
    rows, w, top, first, index, room, v);
add_columns<ROWS, OWN, COLUMNS>(bias, first, lane, v);
norm_tile_rows<N, ROWS, OWN, COLUMNS>(
    norm_w, norm_b, as_type<float>(EPS), first, lane, partial, squares, v);
#pragma unroll
for (int i = 0; i < ROWS * OWN * COLUMNS * 4; ++i) {
  float u = v[i / 4 / COLUMNS][i / 4 % COLUMNS][i % 4];
  v[i / 4 / COLUMNS][i / 4 % COLUMNS][i % 4] = mish(u);
}
if (SHIFT) {
  int solution = int(threadgroup_position_in_grid.y) / SEQUENCES;
  add_columns<ROWS, OWN, COLUMNS>(shift + solution * N, first, lane, v);
}
store_tile_rows<N, ROWS, OWN, COLUMNS>(y + batch * N, top, frames, first, lane, v);
