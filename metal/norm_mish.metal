// norm_mish: y = mish(layer_norm(x + bias)) (+ shift), where x is the first C of
// STRIDE columns. With TAPS of 3, y is what a causal convolution of three rows
// multiplies: row t is the rows t - 2, t - 1 and t side by side, zeros before
// the first, so that the convolution is one product.
// x: [B, T, STRIDE]; bias, w, b, shift: [C] → y: [B, T, TAPS * C]
// A SIMD group for each row.
// Reference: reference::norm_mish.
//
// inputs: x bias w b shift
// outputs: y
#include "activations.h"
#include "rows.h"

//: kernel
constexpr int N = (C + 31) / 32;
int lane = int(thread_index_in_simdgroup);
int t = int(threadgroup_position_in_grid.x), T = int(threadgroups_per_grid.x);
long row = long(threadgroup_position_in_grid.y) * T + t;
float v[N];
load_row<C>(x + row * STRIDE, lane, v);
add_weights<C>(bias, lane, v);
norm_row<C>(w, b, as_type<float>(EPS), lane, v);
for (int i = 0; i < N; ++i) v[i] = mish(v[i]);
if (SHIFT) add_weights<C>(shift, lane, v);
for (int tap = 0; tap < TAPS; ++tap) {
  int later = TAPS - 1 - tap;
  if (t + later < T) store_row<C>(y + ((row + later) * TAPS + tap) * C, lane, v);
}
for (int i = 0; i < N; ++i) v[i] = 0.0f;
for (int tap = 0; tap + t < TAPS - 1; ++tap) {
  store_row<C>(y + (row * TAPS + tap) * C, lane, v);
}
