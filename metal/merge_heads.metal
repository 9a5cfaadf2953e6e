// merge_heads: the heads of a row side by side again.
// x: [B, HEADS, T, D] → y: [B, T, HEADS * D]
// Reference: mx::transpose, mx::reshape.
//
// inputs: x
// outputs: y

//: kernel
int t = int(threadgroup_position_in_grid.x), T = int(threadgroups_per_grid.x);
long b = long(threadgroup_position_in_grid.y);
for (int c = int(thread_index_in_threadgroup); c < HEADS * D; c += THREADS) {
  float v = float(x[((b * HEADS + c / D) * T + t) * D + c % D]);
  y[(b * T + t) * HEADS * D + c] = Y(v);
}
