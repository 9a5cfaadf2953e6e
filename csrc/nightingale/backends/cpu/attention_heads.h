#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "nightingale/backends/cpu/simd.h"
#include "nightingale/ops/attention.h"

// Attention of single heads over their caches.

namespace nightingale::cpu {

// Cosine and sine of one position's angle for each of `half` frequencies, in
// float32 like the reference model.
inline void rotary_angles(
    const float* frequencies,
    int half,
    int position,
    float* cosine,
    float* sine) {
  for (int i = 0; i < half; ++i) {
    float angle = static_cast<float>(position) * frequencies[i];
    cosine[i] = std::cos(angle);
    sine[i] = std::sin(angle);
  }
}

// One head's channels x, rotated into y.
inline void rotate_head(
    const float* x,
    const float* cosine,
    const float* sine,
    int half,
    float* y) {
  for (int i = 0; i < half; ++i) {
    float first = x[i], second = x[half + i];
    y[i] = first * cosine[i] - second * sine[i];
    y[half + i] = second * cosine[i] + first * sine[i];
  }
}

// How a cache stores the vectors of a head, one after the other: as floats or
// quantized (nightingale/ops/quantized_cache.h).
struct CacheRows {
  int depth;
  int bits; // 0: floats
  Storage storage; // of floats
  int64_t bytes; // of one vector

  static CacheRows of(const mx::array& cache, int depth);

  void pack(const float* x, char* row) const;
  void unpack(const char* rows, int count, float* y) const;

  // y[t] = sum_d x[d] * rows[t, d]
  void dots(const float* x, const char* rows, int count, float* y) const;

  // out[d] = sum_t p[t] * rows[t, d]
  void weighted_sum(const float* p, const char* rows, int count, float* out)
      const;
};

// An Error where keys and values are stored differently.
void check_caches(const mx::array& keys, const mx::array& values);

// The vectors of one head of one batch row.
// cache: [B, heads, capacity, ...], row-major
inline char* head_rows(mx::array& cache, int b, int head) {
  int64_t bytes = cache.shape(2) * int64_t(cache.shape(3)) * cache.itemsize();
  return cache.data<char>() + (b * int64_t(cache.shape(1)) + head) * bytes;
}
inline const char* head_rows(const mx::array& cache, int b, int head) {
  return head_rows(const_cast<mx::array&>(cache), b, head);
}

// Query rows of one tile, when BLAS runs it.
constexpr int kQueryRows = 64;

// Rows of queries of one head against its cache. Row 0 sees `visible` keys,
// each later row one more.
struct Attention {
  const float* q;
  int64_t q_stride;
  int rows;
  CacheRows cache;
  const char* k;
  const char* v = nullptr;
  int visible;
  float* out = nullptr;
  int64_t out_stride = 0;
  // Unless null, each key's weights of all rows are added here.
  float* mass = nullptr;

  int visible_to(int row) const {
    return visible + row;
  }
  float scale() const {
    return 1.0f / std::sqrt(static_cast<float>(cache.depth));
  }
};

// The softmax weights of one row, visible_to(row) of them.
void weigh(const Attention& a, int row, float* weights);

// What each of the last `rows` gives to the keys [begin, begin + count), 0 to
// those it does not see: y [rows, count].
void weigh_span(const Attention& a, int rows, int begin, int count, float* y);

// Runs rows [begin, end) of `whole`.
void attend(const Attention& whole, int begin, int end);

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
  const float* angles; // [T, depth], as angles_from gives them; null: none
  char* keys; // [B, heads, capacity] vectors
  char* values;
  float* out; // [B, T, heads * depth]
  mx::array* weights; // [rows, count] of each watched head
  int* dropped = nullptr; // [B, heads]
  float* mass = nullptr; // [B, heads, capacity]

  // Rotates the head's queries and keys by the angles, writes its keys and
  // values into the caches, attends.
  void run_head(int b, int head) const;

  // The vectors of a head in `keys` or `values`.
  char* head_rows(char* cache, int b, int head) const {
    return cache + (int64_t(b) * heads + head) * capacity * rows.bytes;
  }
};

// Cosines, then sines, of the positions [past, past + length), in memory of the
// calling thread: [length, 2 * frequencies]
const float* angles_from(const mx::array& frequencies, int past, int length);
// The same of any positions.
const float* angles_at(
    const mx::array& frequencies,
    std::span<const int> positions);

} // namespace nightingale::cpu
