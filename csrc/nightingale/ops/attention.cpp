#include "nightingale/ops/attention.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s) {
  return on_cpu(s) ? cpu::make_cache(shape, dtype, s)
                   : gpu::make_cache(shape, dtype, s);
}

mx::array fork_cache(
    const mx::array& prefix,
    int length,
    int batch,
    int capacity,
    mx::Stream s) {
  auto run = on_cpu(s) ? cpu::fork_cache : gpu::fork_cache;
  return run(prefix, length, batch, capacity, s);
}

mx::array write_heads(
    const mx::array& cache,
    const mx::array& x,
    int past,
    mx::Stream s) {
  return on_cpu(s) ? cpu::write_heads(cache, x, past, s)
                   : gpu::write_heads(cache, x, past, s);
}

mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s) {
  return on_cpu(s) ? cpu::cached_attention(q, keys, values, past, s)
                   : gpu::cached_attention(q, keys, values, past, s);
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
      : gpu::attention_weights(q, keys, past, head, rows, begin, count, s);
}

SelfAttention self_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const mx::array& keys,
    const mx::array& values,
    int past,
    const AttentionWatch& watch,
    mx::Stream s) {
  auto run = on_cpu(s) ? cpu::self_attention : gpu::self_attention;
  return run(qkv, frequencies, keys, values, past, watch, s);
}

mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s) {
  return on_cpu(s) ? cpu::full_attention(q, k, v, heads, s)
                   : gpu::full_attention(q, k, v, heads, s);
}

mx::array relative_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const mx::array& positions,
    const mx::array& content_bias,
    const mx::array& position_bias,
    int heads,
    mx::Stream s) {
  return on_cpu(s)
      ? cpu::relative_attention(
            q, k, v, positions, content_bias, position_bias, heads, s)
      : gpu::relative_attention(
            q, k, v, positions, content_bias, position_bias, heads, s);
}

} // namespace nightingale::ops
