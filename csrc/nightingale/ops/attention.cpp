#include "nightingale/ops/attention.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s) {
  return on_cpu(s) ? cpu::make_cache(shape, dtype, s)
                   : gpu::make_cache(shape, dtype, s);
}

mx::array
fork_cache(const mx::array& prefix, const CacheFork& fork, mx::Stream s) {
  return on_cpu(s) ? cpu::fork_cache(prefix, fork, s)
                   : gpu::fork_cache(prefix, fork, s);
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
    const CachedQueries& queries,
    const LayerCache& cache,
    mx::Stream s) {
  return on_cpu(s) ? cpu::cached_attention(queries, cache, s)
                   : gpu::cached_attention(queries, cache, s);
}

std::vector<mx::array> attention_weights(
    const CachedQueries& queries,
    const mx::array& keys,
    const AttentionWatch& watch,
    mx::Stream s) {
  return on_cpu(s) ? cpu::attention_weights(queries, keys, watch, s)
                   : gpu::attention_weights(queries, keys, watch, s);
}

SelfAttention self_attention(const AttentionInput& in, mx::Stream s) {
  return on_cpu(s) ? cpu::self_attention(in, s) : gpu::self_attention(in, s);
}

SelfAttention projected_attention(
    const AttentionInput& in,
    const Matrix& projection,
    const mx::array& residual,
    mx::Stream s) {
  return on_cpu(s) ? cpu::projected_attention(in, projection, residual, s)
                   : gpu::projected_attention(in, projection, residual, s);
}

} // namespace nightingale::ops
