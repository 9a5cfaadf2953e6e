#pragma once

#include "nightingale/ops/backend.h"
#include "nightingale/ops/cache_groups.h"

namespace nightingale::ops {

// Quantized caches: [B, heads, capacity, words] uint32. The last axis is one
// head's vector, x = scale * q + offset: integers q of `bits` from the lowest
// bits up, as in MLX's affine format, then for every 32 of them a word with the
// scale in its lower half and the offset in its upper, both bfloat16. The
// offset is the smaller of 0 and the least of the 32, the scale takes the
// largest q to their greatest, and both are rounded away from 0: nothing is
// clipped, and the error is at most half a scale. Where one of the 32 is not
// finite all of them read as NaN.

// uint32 in a vector; an Error for unsupported bits or head_dim.
int quantized_words(int head_dim, int bits);

// Bits of a quantized cache, 0 for one of floating point.
int quantized_bits(const mx::array& cache, int head_dim);

struct CacheSize {
  int batch;
  int heads;
  int capacity;
  int head_dim;
};

struct CacheShape {
  mx::Shape shape;
  mx::Dtype dtype;
};

// The shape and type of a quantized cache, or with `bits` 0 of one of `dtype`.
CacheShape cache_shape(const CacheSize& size, mx::Dtype dtype, int bits);

} // namespace nightingale::ops
