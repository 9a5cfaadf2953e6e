// tile_linear_norm: a product with a residual, and the norm that the next product
// begins with: sum = residual + (x · wᵀ + bias), normed = layer_norm(sum).
// With ONTO sum = (residual + x · wᵀ) + bias, the product added to the residual
// part by part: the order in which tile_feed_forward takes its last sum. Without
// NORMED there is no norm.
// x: [rows, K]; w: [N, K]; bias, norm_w, norm_b: [N]; residual: [rows, N]
//   → sum, normed: [rows, N]
// A group makes 16 * ROWS whole rows, its SIMD groups a part of the columns each, so
// that a row's mean and variance need two barriers.
// Reference: reference::linear, then reference::layer_norm.
//
// inputs: x w bias residual norm_w norm_b extent
// outputs: sum normed
#include "tile_rows.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int PATCHES = N / (8 * COLUMNS), OWN = PATCHES / SIMDS;
threadgroup uint4 room[2 * 16 * ROWS * 4 * DEPTH];
uint lane = thread_index_in_simdgroup;
int index = int(thread_index_in_threadgroup);
int first = int(simdgroup_index_in_threadgroup) * OWN;
int row_count = extent[0], top = int(threadgroup_position_in_grid.x) * 16 * ROWS;
float v[ROWS * OWN][COLUMNS][4];
if (ONTO) take_tile_rows<N, ROWS, OWN, COLUMNS, false>(residual, top, row_count, first, lane, v);
else clear_tile_rows<ROWS * OWN, COLUMNS>(v);
add_shared_product<ROWS, OWN, COLUMNS, DEPTH, AHEAD, K, THREADS>(
    plain_rows<K>(x, row_count), w, top, first, index, room, v);
add_columns<ROWS, OWN, COLUMNS>(bias, first, lane, v);
if (!ONTO) take_tile_rows<N, ROWS, OWN, COLUMNS, true>(residual, top, row_count, first, lane, v);
store_tile_rows<N, ROWS, OWN, COLUMNS>(sum, top, row_count, first, lane, v);
#if NORMED
threadgroup float partial[PATCHES * 16 * ROWS], squares[PATCHES * 16 * ROWS];
norm_tile_rows<N, ROWS, OWN, COLUMNS>(
    norm_w, norm_b, as_type<float>(EPS), first, lane, partial, squares, v);
store_tile_rows<N, ROWS, OWN, COLUMNS>(normed, top, row_count, first, lane, v);
#endif
