// append_heads: turns the queries and keys of T new positions and writes keys and
// values into the caches. In quantized caches a SIMD group writes one vector at a
// time.
// qkv: [B, T, 3, HEADS, 64]; frequencies: [32]; position: positions before these,
// capacity of the caches; keys, values: [B, HEADS, capacity, 64], or quantized
// where BITS is 8 or 4 (see quantized_cache.h) → q: [B, HEADS, T, 64]
// Reference: reference::rotary, reference::write_heads.
//
// inputs: qkv frequencies position after
// state: keys values
// outputs: q
#include "quantized_cache.h"
#include "rotary.h"

//: kernel
constexpr int WIDTH = HEADS * 64;
constexpr int SIMDS = THREADS / 32;
int t = int(threadgroup_position_in_grid.x), length = int(threadgroups_per_grid.x);
int b = int(threadgroup_position_in_grid.y);
int past = position[0], capacity = position[1];
const device X* from = qkv + long(b * length + t) * 3 * WIDTH;
for (int i = int(thread_index_in_threadgroup); i < WIDTH; i += THREADS) {
  int head = i / 64, c = i % 64;
  const device X* query = from + head * 64;
  q[(long(b * HEADS + head) * length + t) * 64 + c] = X(turned(query, frequencies, past + t, c));
#if BITS > 8
  long at = (long(b * HEADS + head) * capacity + past + t) * 64 + c;
  keys[at] = C(turned(query + WIDTH, frequencies, past + t, c));
  values[at] = C(float(query[2 * WIDTH + c]));
#endif
}
#if BITS < 16
int lane = int(thread_index_in_simdgroup);
for (int i = int(simdgroup_index_in_threadgroup); i < 2 * HEADS; i += SIMDS) {
  int head = i / 2;
  const device X* vector = from + (1 + i % 2) * WIDTH + head * 64;
  float first = float(vector[lane]), second = float(vector[lane + 32]);
  if (i % 2 == 0) {
    first = turned(vector, frequencies, past + t, lane);
    second = turned(vector, frequencies, past + t, lane + 32);
  }
  long at = (long(b * HEADS + head) * capacity + past + t) * row_size<BITS>();
  keep_row<BITS>(first, second, (i % 2 == 0 ? keys : values) + at, lane);
}
#endif
