#pragma once

#include <cstdint>

#include "nightingale/ops/cache_groups.h"

namespace nightingale::cpu {

// Vectors in codes, as nightingale/ops/quantized_cache.h has them, one after
// the other. `depth` is one that ops::quantized_words takes. Every entry is
// indexed by quantized_index.
struct CacheLoops {
  void (*pack[2])(const float* x, int depth, uint32_t* row);
  void (*unpack[2])(const uint32_t* rows, int count, int depth, float* y);

  // y[t] = sum_d x[d] * rows[t, d]
  void (*dots[2])(
      const float* x,
      const uint32_t* rows,
      int count,
      int depth,
      float* y);

  // out[d] = sum_t p[t] * rows[t, d]
  void (*weighted_sum[2])(
      const float* p,
      const uint32_t* rows,
      int count,
      int depth,
      float* out);
};

constexpr int quantized_index(int bits) {
  return bits == 8 ? 0 : 1;
}

} // namespace nightingale::cpu
