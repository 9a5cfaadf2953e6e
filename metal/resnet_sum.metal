// resnet_sum: the end of a residual block, and the norm that the next product
// begins with: sum = mish(layer_norm(x + bias, w, b)) + (residual + residual_b),
// normed = layer_norm(sum, next_w, next_b). The residual is the last C of 2 * C
// columns of a product that both convolutions of the block's input share.
// x: [rows, C]; residual: [rows, 2 * C]; others: [C] → sum, normed: [rows, C]
// A SIMD group for each row.
// Reference: reference::norm_mish, reference::apply_epilogue, then reference::layer_norm.
//
// inputs: x bias w b residual residual_b next_w next_b
// outputs: sum normed
#include "activations.h"
#include "rows.h"

//: kernel
constexpr int N = (C + 31) / 32;
int lane = int(thread_index_in_simdgroup);
long row = long(threadgroup_position_in_grid.x) * C;
float v[N], more[N];
load_row<C>(x + row, lane, v);
load_row<C>(residual + 2 * row + C, lane, more);
add_weights<C>(bias, lane, v);
add_weights<C>(residual_b, lane, more);
norm_row<C>(w, b, as_type<float>(EPS), lane, v);
for (int i = 0; i < N; ++i) v[i] = mish(v[i]) + more[i];
store_row<C>(sum + row, lane, v);
norm_row<C>(next_w, next_b, as_type<float>(NEXT_EPS), lane, v);
store_row<C>(normed + row, lane, v);
