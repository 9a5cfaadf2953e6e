// read_quantized: the first T positions of quantized caches as floats, for
// attention that MLX computes.
// keys, values: [B, HEADS, capacity, 2 * BITS + 2]; position: as append_heads took
// it; after: what append_heads gave → k, v: [B, HEADS, T, 64]
// Reference: reference::decode_heads.
//
// inputs: keys values position after
// outputs: k v
#include "quantized_cache.h"

//: kernel
int t = int(threadgroup_position_in_grid.x), length = int(threadgroups_per_grid.x);
int b = int(threadgroup_position_in_grid.y), capacity = position[1];
for (int i = int(thread_index_in_threadgroup); i < HEADS * 16; i += THREADS) {
  int head = i / 16, channel = i % 8 * 8;
  bool is_key = i % 16 < 8;
  long row = long(b * HEADS + head) * capacity + t;
  long at = (long(b * HEADS + head) * length + t) * 64 + channel;
  Held8<uint, BITS> held;
  float one[8];
  held.load((is_key ? keys : values) + row * row_size<BITS>(), channel);
  held.get(one);
  for (int c = 0; c < 8; ++c) (is_key ? k : v)[at + c] = X(one[c]);
}
