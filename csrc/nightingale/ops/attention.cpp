#include "nightingale/ops/attention.h"

#include "mlx/transforms.h"
#include "nightingale/backends/cpu/evicting_attention.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/decode_attention.h"
#include "nightingale/backends/gpu/prefill_attention.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/linear.h"

namespace nightingale::ops {

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s) {
  return on_cpu(s) ? cpu::make_cache(shape, dtype, s)
                   : reference::make_cache(shape, dtype, s);
}

mx::array fork_cache(
    const mx::array& prefix,
    int length,
    int batch,
    int capacity,
    mx::Stream s) {
  auto run = on_cpu(s) ? cpu::fork_cache : reference::fork_cache;
  return run(prefix, length, batch, capacity, s);
}

mx::array write_heads(
    const mx::array& cache,
    const mx::array& x,
    int past,
    mx::Stream s) {
  return on_cpu(s) ? cpu::write_heads(cache, x, past, s)
                   : reference::write_heads(cache, x, past, s);
}

mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s) {
  return on_cpu(s) ? cpu::cached_attention(q, keys, values, past, s)
                   : reference::cached_attention(q, keys, values, past, s);
}

mx::array attention_weights(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int head,
    int rows,
    int begin,
    int count,
    mx::Stream s) {
  return on_cpu(s)
      ? cpu::attention_weights(q, keys, past, head, rows, begin, count, s)
      : reference::attention_weights(
            q, keys, past, head, rows, begin, count, s);
}

ProjectedAttention projected_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const LayerCache& cache,
    int past,
    const AttentionWatch& watch,
    const Matrix& out,
    const mx::array& residual,
    mx::Stream s) {
  if (cache.eviction) {
    auto attention =
        cpu::evicting_attention(qkv, frequencies, cache, past, watch, s);
    return {
        linear(attention.out, out, {.residual = residual}, s),
        std::move(attention.cache),
        std::move(attention.weights)};
  }
  if (!on_cpu(s) && gpu::can_use_decode_attention(qkv, cache, out, s)) {
    return gpu::projected_attention(
        qkv, frequencies, cache, past, watch, out, residual, s);
  }
  if (!on_cpu(s) && gpu::can_use_prefill_attention(qkv, cache, watch, s)) {
    return gpu::prefill_attention(
        qkv, frequencies, cache, past, out, residual, s);
  }
  if (cache.written) {
    mx::eval(*cache.written); // MLX's ops do not see writes in place
  }
  auto attention = self_attention(
      qkv, frequencies, cache.keys, cache.values, past, watch, s);
  return {
      linear(attention.out, out, {.residual = residual}, s),
      {attention.keys, attention.values},
      std::move(attention.weights)};
}

SelfAttention self_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const mx::array& keys,
    const mx::array& values,
    int past,
    const AttentionWatch& watch,
    mx::Stream s) {
  auto run = on_cpu(s) ? cpu::self_attention : reference::self_attention;
  return run(qkv, frequencies, keys, values, past, watch, s);
}

mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s) {
  return on_cpu(s) ? cpu::full_attention(q, k, v, heads, s)
                   : reference::full_attention(q, k, v, heads, s);
}

} // namespace nightingale::ops
