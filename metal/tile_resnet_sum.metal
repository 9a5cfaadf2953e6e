// tile_resnet_sum: the second half of a residual block, and the norm that the next
// product begins with: sum = mish(layer_norm(conv + bias)) + (residual_w · x +
// residual_b), normed = layer_norm(sum), where conv is a causal convolution of
// three rows of h, and x has skip beside it.
// h: [B, T, N]; x: [B, T, CX]; skip: [B, T, CS]; w: [N, 3 * N]; residual_w:
// [N, CX + CS]; others: [N] → sum, normed: [B, T, N]
// A group makes 16 whole rows.
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
threadgroup float partial[PATCHES * 16], squares[PATCHES * 16];
uint lane = thread_index_in_simdgroup;
int first = int(simdgroup_index_in_threadgroup) * OWN;
int frames = extent[0], top = int(threadgroup_position_in_grid.x) * 16;
long batch = long(threadgroup_position_in_grid.y) * frames;
auto hidden = tap_rows<T, 3, N, 0>(h + batch * N, h, frames);
auto rows = tap_rows<T, 1, CX, CS>(x + batch * CX, skip + batch * CS, frames);
float v[OWN][COLUMNS][4], more[OWN][COLUMNS][4];
tile_product<OWN, COLUMNS, DEPTH, 3 * N>(hidden, w, top, first, lane, v);
tile_product<OWN, COLUMNS, DEPTH, C>(rows, residual_w, top, first, lane, more);
add_columns<OWN, COLUMNS>(bias, first, lane, v);
add_columns<OWN, COLUMNS>(residual_b, first, lane, more);
norm_tile_rows<N, OWN, COLUMNS>(
    norm_w, norm_b, as_type<float>(EPS), first, lane, partial, squares, v);
#pragma unroll
for (int i = 0; i < OWN * COLUMNS * 4; ++i) {
  int p = i / 4 / COLUMNS, j = i / 4 % COLUMNS, e = i % 4;
  v[p][j][e] = mish(v[p][j][e]) + more[p][j][e];
}
store_tile_rows<N, OWN, COLUMNS>(sum + batch * N, top, frames, first, lane, v);
norm_tile_rows<N, OWN, COLUMNS>(
    next_w, next_b, as_type<float>(NEXT_EPS), first, lane, partial, squares, v);
store_tile_rows<N, OWN, COLUMNS>(normed + batch * N, top, frames, first, lane, v);
