#pragma once

#include "mlx/array.h"
#include "nightingale/backends/cpu/simd.h"

namespace nightingale::cpu {

// How a cache keeps the vectors of a head, one after the other: as floats or
// as codes (nightingale/ops/quantized_cache.h).
struct CacheRows {
  int depth;
  int bits; // of codes; 0: floats
  Storage storage; // of floats
  int64_t bytes; // of one vector

  static CacheRows of(const mlx::core::array& cache, int depth);

  void pack(const float* x, char* row) const;
  void unpack(const char* rows, int count, float* y) const;

  // y[t] = sum_d x[d] * rows[t, d]
  void dots(const float* x, const char* rows, int count, float* y) const;

  // out[d] = sum_t p[t] * rows[t, d]
  void weighted_sum(const float* p, const char* rows, int count, float* out)
      const;
};

// An Error where keys and values are not kept in the same way.
void check_caches(const mlx::core::array& keys, const mlx::core::array& values);

// The vectors of one head of one batch row.
// cache: [B, heads, capacity, ...], row-major
inline char* head_rows(mlx::core::array& cache, int b, int head) {
  int64_t bytes = cache.shape(2) * int64_t(cache.shape(3)) * cache.itemsize();
  return cache.data<char>() + (b * int64_t(cache.shape(1)) + head) * bytes;
}
inline const char* head_rows(const mlx::core::array& cache, int b, int head) {
  return head_rows(const_cast<mlx::core::array&>(cache), b, head);
}

} // namespace nightingale::cpu
