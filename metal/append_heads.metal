// append_heads: turns the queries and keys of T new positions and writes keys and
// values into the caches.
// qkv: [B, T, 3, HEADS, 64]; frequencies: [32]; position: positions before these,
// capacity of the caches; keys, values: [B, HEADS, capacity, 64]
// → q: [B, HEADS, T, 64]
// Reference: reference::rotary, reference::write_heads.
//
// inputs: qkv frequencies position after
// state: keys values
// outputs: q
#include "rotary.h"

//: kernel
constexpr int WIDTH = HEADS * 64;
int t = int(threadgroup_position_in_grid.x), length = int(threadgroups_per_grid.x);
int b = int(threadgroup_position_in_grid.y);
int past = position[0], capacity = position[1];
for (int i = int(thread_index_in_threadgroup); i < WIDTH; i += THREADS) {
  int head = i / 64, c = i % 64;
  const device X* from = qkv + long(b * length + t) * 3 * WIDTH + head * 64;
  long at = (long(b * HEADS + head) * capacity + past + t) * 64 + c;
  q[(long(b * HEADS + head) * length + t) * 64 + c] = X(turned(from, frequencies, past + t, c));
  keys[at] = C(turned(from + WIDTH, frequencies, past + t, c));
  values[at] = C(float(from[2 * WIDTH + c]));
}
