#include "nightingale/ops/gpu/prefill_attention.h"

#include <cmath>

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/ops/gpu/kernel.h"
#include "nightingale/ops/gpu/linear.h"
#include "nightingale/ops/gpu/place.h"

namespace nightingale::gpu {

namespace {

constexpr int kHeadDim = 64;

mx::array filled(const mx::array& cache, int length, mx::Stream s) {
  mx::Shape stop = cache.shape();
  stop[2] = length;
  return mx::slice(cache, {0, 0, 0, 0}, stop, s);
}

} // namespace

bool takes_prefill_attention(
    const mx::array& qkv,
    const ops::LayerCache& cache,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  return has_kernels(s) && watch.heads.empty() &&
      cache.keys.shape(3) == kHeadDim && cache.keys.dtype() == qkv.dtype();
}

ops::ProjectedAttention prefill_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const ops::LayerCache& cache,
    int past,
    const ops::Matrix& out,
    const mx::array& residual,
    mx::Stream s) {
  int batch = qkv.shape(0), length = qkv.shape(1);
  int heads = cache.keys.shape(1);
  // MLX's attention does not see that the caches are written here, but it takes
  // the queries, which the same launch makes.
  auto q = launch_one(
      {.kernel = "append_heads",
       .inputs =
           {mx::contiguous(qkv, false, s),
            frequencies,
            place_of(past, cache.keys.shape(2), s),
            cache.written.value_or(frequencies)},
       .state = {cache.keys, cache.values},
       .outputs = {{{batch, heads, length, kHeadDim}, qkv.dtype()}},
       .constants =
           {{"X", qkv.dtype()}, {"C", cache.keys.dtype()}, {"HEADS", heads}},
       .groups = {length, batch, 1},
       .threads = {256, 128, 64, 32}},
      s);
  auto attended = mx::fast::scaled_dot_product_attention(
      q,
      filled(cache.keys, past + length, s),
      filled(cache.values, past + length, s),
      1.0f / std::sqrt(static_cast<float>(kHeadDim)),
      length == 1 ? "" : "causal",
      std::nullopt,
      std::nullopt,
      false,
      s);
  auto rows = mx::reshape(
      mx::transpose(attended, {0, 2, 1, 3}, s),
      {batch, length, heads * kHeadDim},
      s);
  return {
      linear(rows, out, {.residual = residual}, s),
      {cache.keys, cache.values, q},
      {}};
}

} // namespace nightingale::gpu
