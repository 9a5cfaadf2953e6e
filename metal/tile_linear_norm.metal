// tile_linear_norm: a product with a residual, and the norm that the next product
// begins with: sum = residual + (x · wᵀ + bias), normed = layer_norm(sum).
// x: [rows, K]; w: [N, K]; bias, norm_w, norm_b: [N]; residual: [rows, N]
//   → sum, normed: [rows, N]
// A group makes 16 whole rows, its SIMD groups a part of the columns each, so that
// a row's mean and variance need two barriers.
// Reference: reference::linear, then reference::layer_norm.
//
// inputs: x w bias residual norm_w norm_b extent
// outputs: sum normed
#include "tile_rows.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int PATCHES = N / (8 * COLUMNS), OWN = PATCHES / SIMDS;
threadgroup float partial[PATCHES * 16], squares[PATCHES * 16];
uint lane = thread_index_in_simdgroup;
int first = int(simdgroup_index_in_threadgroup) * OWN;
int row_count = extent[0], top = int(threadgroup_position_in_grid.x) * 16;
float v[OWN][COLUMNS][4];
tile_product<OWN, COLUMNS, DEPTH, K>(plain_rows<K>(x, row_count), w, top, first, lane, v);
add_columns<OWN, COLUMNS>(bias, first, lane, v);
add_tile_rows<N, OWN, COLUMNS>(residual, top, row_count, first, lane, v);
store_tile_rows<N, OWN, COLUMNS>(sum, top, row_count, first, lane, v);
norm_tile_rows<N, OWN, COLUMNS>(
    norm_w, norm_b, as_type<float>(EPS), first, lane, partial, squares, v);
store_tile_rows<N, OWN, COLUMNS>(normed, top, row_count, first, lane, v);
