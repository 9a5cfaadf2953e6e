#pragma once

#include "nightingale/backends/cpu/cache_rows.h"
#include "nightingale/ops/attention.h"

namespace nightingale::cpu {

// A layer's attention over T new positions, one head of one batch row at a
// time: all heads may run at once.
struct LayerAttention {
  int length; // T
  int past;
  int heads;
  int capacity; // of the caches
  const ops::AttentionWatch& watch;
  CacheRows rows;
  const float* qkv; // [B, T, 3 * heads * depth]
  const float* angles; // [T, depth], as angles_from gives them
  char* keys; // [B, heads, capacity] vectors
  char* values;
  float* out; // [B, T, heads * depth]
  mx::array* weights; // [rows, count] of each watched head
  int* dropped = nullptr; // [B, heads]
  float* mass = nullptr; // [B, heads, capacity]

  // Turns the head's queries and keys, writes its keys and values into the
  // caches, attends.
  void run_head(int b, int head) const;

  // The vectors of a head in `keys` or `values`.
  char* head_rows(char* cache, int b, int head) const {
    return cache + (int64_t(b) * heads + head) * capacity * rows.bytes;
  }
};

// Cosines, then sines, of the positions [past, past + length), in memory of the
// calling thread: [length, 2 * frequencies]
const float* angles_from(const mx::array& frequencies, int past, int length);

} // namespace nightingale::cpu
