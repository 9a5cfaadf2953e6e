#include "nightingale/backends/cpu/cache_rows.h"

#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/error.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::cpu {

namespace {

const uint32_t* words(const char* rows) {
  return reinterpret_cast<const uint32_t*>(rows);
}

} // namespace

CacheRows CacheRows::of(const mx::array& cache, int depth) {
  int bits = ops::quantized_bits(cache, depth);
  return {
      depth,
      bits,
      bits ? Storage::f32 : storage_of(cache),
      int64_t(cache.shape(3)) * static_cast<int64_t>(cache.itemsize())};
}

void CacheRows::pack(const float* x, char* row) const {
  if (bits) {
    auto* quantized = reinterpret_cast<uint32_t*>(row);
    simd().cache.pack[quantized_index(bits)](x, depth, quantized);
  } else {
    simd().pack[static_cast<int>(storage)](x, depth, row);
  }
}

void CacheRows::unpack(const char* rows, int count, float* y) const {
  if (bits) {
    simd().cache.unpack[quantized_index(bits)](words(rows), count, depth, y);
  } else {
    simd().unpack[static_cast<int>(storage)](rows, int64_t(count) * depth, y);
  }
}

void CacheRows::dots(const float* x, const char* rows, int count, float* y)
    const {
  if (bits) {
    simd().cache.dots[quantized_index(bits)](x, words(rows), count, depth, y);
    return;
  }
  DotArgs args;
  args.x = x;
  args.x_stride = depth;
  args.rows = 1;
  args.w = rows;
  args.w_stride = depth;
  args.columns = count;
  args.depth = depth;
  args.y = y;
  args.y_stride = count;
  simd().dots[static_cast<int>(storage)](args);
}

void CacheRows::weighted_sum(
    const float* p,
    const char* rows,
    int count,
    float* out) const {
  if (bits) {
    simd().cache.weighted_sum[quantized_index(bits)](
        p, words(rows), count, depth, out);
  } else {
    simd().weighted_sum[static_cast<int>(storage)](
        p, count, rows, depth, depth, out);
  }
}

void check_caches(const mx::array& keys, const mx::array& values) {
  if (keys.dtype() != values.dtype() || keys.shape(3) != values.shape(3)) {
    throw Error("the caches of keys and values must be of one type");
  }
}

} // namespace nightingale::cpu
