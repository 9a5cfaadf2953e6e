#include "nightingale/ops/quantized_cache.h"

#include <string>

#include "nightingale/error.h"

namespace nightingale::ops {

int quantized_words(int head_dim, int bits) {
  if (bits != 8 && bits != 4) {
    throw Error("a KV cache takes 8 or 4 bits, not " + std::to_string(bits));
  }
  if (head_dim <= 0 || head_dim % kCacheGroup != 0 ||
      head_dim > kMostCacheGroups * kCacheGroup) {
    throw Error(
        "heads of " + std::to_string(head_dim) +
        " cannot be cached quantized: their size must be a multiple of " +
        std::to_string(kCacheGroup) + ", and at most " +
        std::to_string(kMostCacheGroups * kCacheGroup));
  }
  return head_dim * bits / 32 + head_dim / kCacheGroup;
}

int quantized_bits(const mx::array& cache, int head_dim) {
  if (cache.dtype() != mx::uint32) {
    return 0;
  }
  for (int bits : {8, 4}) {
    if (cache.shape(3) == quantized_words(head_dim, bits)) {
      return bits;
    }
  }
  throw Error(
      "a KV cache of " + std::to_string(cache.shape(3)) +
      " words a vector does not hold heads of " + std::to_string(head_dim));
}

CacheShape cache_shape(const CacheSize& size, mx::Dtype dtype, int bits) {
  auto [batch, heads, capacity, head_dim] = size;
  if (bits == 0) {
    return {{batch, heads, capacity, head_dim}, dtype};
  }
  return {
      {batch, heads, capacity, quantized_words(head_dim, bits)}, mx::uint32};
}

} // namespace nightingale::ops
