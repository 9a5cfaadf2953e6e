// add_norm: the end of a product with a residual, and the norm that the next
// product begins with: sum = residual + (x + bias), normed = layer_norm(sum).
// x, residual: [rows, C]; bias, w, b: [C] → sum, normed: [rows, C]
// A SIMD group for each row, which is read once and stays in registers.
// Reference: reference::apply_epilogue, then reference::layer_norm.
//
// inputs: x bias residual w b
// outputs: sum normed
#include "rows.h"

//: kernel
constexpr int N = (C + 31) / 32;
int lane = int(thread_index_in_simdgroup);
long row = long(threadgroup_position_in_grid.x) * C;
float v[N], more[N];
load_row<C>(x + row, lane, v);
load_row<C>(residual + row, lane, more);
add_weights<C>(bias, lane, v);
for (int i = 0; i < N; ++i) v[i] = more[i] + v[i];
store_row<C>(sum + row, lane, v);
norm_row<C>(w, b, as_type<float>(EPS), lane, v);
store_row<C>(normed + row, lane, v);
