// split_heads: the queries, keys and values of one product, each head in rows of
// its own, queries scaled by 1 / sqrt(D). PARTS of 3: q, k, v; of 4: q with the
// one bias, q with the other, k, v.
// x: [B, T, 3 * HEADS * D]; bias, other: [HEADS * D] → y: [PARTS, B, HEADS, T, D]
// Reference: reference::full_attention and reference::relative_attention, up to their products.
//
// inputs: x bias other
// outputs: y

//: kernel
constexpr int C = HEADS * D;
int t = int(threadgroup_position_in_grid.x), T = int(threadgroups_per_grid.x);
int b = int(threadgroup_position_in_grid.y), B = int(threadgroups_per_grid.y);
int part = int(threadgroup_position_in_grid.z), from = max(0, part + 3 - PARTS);
for (int c = int(thread_index_in_threadgroup); c < C; c += THREADS) {
  float v = float(x[(long(b) * T + t) * 3 * C + from * C + c]);
  if (PARTS == 4 && part == 0) v += float(bias[c]);
  if (PARTS == 4 && part == 1) v += float(other[c]);
  if (from == 0) v *= 1.0f / precise::sqrt(float(D));
  y[(((long(part) * B + b) * HEADS + c / D) * T + t) * D + c % D] = Y(v);
}
