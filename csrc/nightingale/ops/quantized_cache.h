#pragma once

#include "nightingale/ops/backend.h"
#include "nightingale/ops/cache_groups.h"

namespace nightingale::ops {

// Caches in codes: [B, heads, capacity, words] uint32, where the last axis is
// one head's vector, x = scale * code + offset: codes of `bits` from the lowest
// bits up, as MLX's affine format has them, then for every 32 of them a word
// with the scale in its lower half and the offset in its upper, both bfloat16.
// The offset is the least of the 32 and 0, the scale what takes the largest
// code to the greatest, each rounded away from 0: so nothing is cut off, and
// what codes lose is half a scale at most. Where one of the 32 is not finite
// all of them read as NaN.

// uint32 in a vector; an Error where bits or head_dim cannot be had.
int quantized_words(int head_dim, int bits);

// Of a cache's codes, 0 for one that is floating point.
int quantized_bits(const mx::array& cache, int head_dim);

// The shape and type of a cache: of codes, or with `bits` 0 of `dtype`.
struct CacheShape {
  mx::Shape shape;
  mx::Dtype dtype;
};
CacheShape cache_shape(
    int batch,
    int heads,
    int capacity,
    int head_dim,
    mx::Dtype dtype,
    int bits);

} // namespace nightingale::ops
