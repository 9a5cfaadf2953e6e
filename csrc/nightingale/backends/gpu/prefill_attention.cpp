#include "nightingale/backends/gpu/prefill_attention.h"

#include <cmath>

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/cache_position.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::gpu {

namespace {

constexpr int kHeadDim = 64;

mx::array filled(const mx::array& cache, int length, mx::Stream s) {
  mx::Shape stop = cache.shape();
  stop[2] = length;
  return mx::slice(cache, {0, 0, 0, 0}, stop, s);
}

// Keys and values of the first positions, after `q` was made. Views of floats
// are read by whoever takes q as well; codes have to be read out.
std::vector<mx::array> read_caches(
    const ops::LayerCache& cache,
    int length,
    int bits,
    const mx::array& place,
    const mx::array& q,
    mx::Stream s) {
  if (!bits) {
    return {filled(cache.keys, length, s), filled(cache.values, length, s)};
  }
  int batch = q.shape(0), heads = q.shape(1);
  KernelOutput floats{{batch, heads, length, kHeadDim}, q.dtype()};
  return launch(
      {.kernel = "read_quantized",
       .inputs = {cache.keys, cache.values, place, q},
       .outputs = {floats, floats},
       .constants = {{"X", q.dtype()}, {"BITS", bits}, {"HEADS", heads}},
       .groups = {length, batch, 1},
       .threads = {256, 128, 64, 32}},
      s);
}

} // namespace

bool can_use_prefill_attention(
    const mx::array& qkv,
    const ops::LayerCache& cache,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  int heads = cache.keys.shape(1);
  return has_kernels(s) && watch.heads.empty() &&
      qkv.shape(2) == 3 * heads * kHeadDim &&
      (cache.keys.dtype() == qkv.dtype() ||
       ops::quantized_bits(cache.keys, kHeadDim) != 0);
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
  int bits = ops::quantized_bits(cache.keys, kHeadDim);
  auto place = cache_position(past, cache.keys.shape(2), s);
  std::vector<Constant> constants{{"X", qkv.dtype()}, {"HEADS", heads}};
  constants.push_back(
      bits ? Constant{"BITS", bits} : Constant{"C", cache.keys.dtype()});
  // MLX's attention does not see that the caches are written here, but it takes
  // the queries, which the same launch makes.
  auto q = launch_one(
      {.kernel = bits ? "append_quantized" : "append_heads",
       .inputs =
           {mx::contiguous(qkv, false, s),
            frequencies,
            place,
            cache.written.value_or(frequencies)},
       .state = {cache.keys, cache.values},
       .outputs = {{{batch, heads, length, kHeadDim}, qkv.dtype()}},
       .constants = constants,
       .groups = {length, batch, 1},
       .threads = {256, 128, 64, 32}},
      s);
  auto read = read_caches(cache, past + length, bits, place, q, s);
  auto attended = mx::fast::scaled_dot_product_attention(
      q,
      read[0],
      read[1],
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
