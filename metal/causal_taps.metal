// causal_taps: what a causal convolution of three rows multiplies: row t is the
// rows t - 2, t - 1 and t of x, and of skip beside it, side by side; zeros
// before the first.
// x: [B, T, CX]; skip: [B, T, CS] → y: [B, T, 3 * (CX + CS)]
// `order` is not read: it is of whoever wrote x in place.
// Reference: mx::concatenate of shifted rows.
//
// inputs: x skip order
// outputs: y
#include "quads.h"

//: kernel
constexpr int C = CX + CS;
constexpr int WIDTH = CX % 4 == 0 && CS % 4 == 0 ? 4 : 1;
int t = int(threadgroup_position_in_grid.x), T = int(threadgroups_per_grid.x);
long row = long(threadgroup_position_in_grid.y) * T + t;
for (int i = int(thread_index_in_threadgroup) * WIDTH; i < 3 * C; i += THREADS * WIDTH) {
  int back = 2 - i / C, c = i % C;
  float v[4];
  for (int j = 0; j < 4; ++j) v[j] = 0.0f;
  if (back <= t) {
    if (c < CX) load<WIDTH>(x + (row - back) * CX + c, v);
    else load<WIDTH>(skip + (row - back) * CS + (c - CX), v);
  }
  store<WIDTH>(y + row * 3 * C + i, v);
}
