#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nightingale/ops/backend.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::gpu {
struct DecoderStep;
}

namespace nightingale::ops {

// Scores are scaled by 1 / sqrt(head_dim) everywhere.

// A cache holds [B, heads, capacity, head_dim] of a floating type, or codes:
// see nightingale/ops/quantized_cache.h.

// An empty cache for write_heads. On the CPU its memory is not touched, so that
// a capacity that is never reached costs nothing.
mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s);

// A cache of `batch` rows that all begin with the first `length` positions of
// `prefix`, as make_cache is otherwise.
// prefix: [1, heads, at least length, ...] → [batch, heads, capacity, ...]
mx::array fork_cache(
    const mx::array& prefix,
    int length,
    int batch,
    int capacity,
    mx::Stream s);

// Writes the heads of x into positions [past, past + T) of a cache and returns
// it. The returned array takes over the cache's buffer; the argument must not
// be read past `past` afterwards.
// x: [B, T, heads * head_dim]
mx::array
write_heads(const mx::array& cache, const mx::array& x, int past, mx::Stream s);

// Causal attention of T new positions over a cache that already holds them.
// q: [B, T, heads * head_dim]; keys, values: caches of which past + T positions
// are filled → [B, T, heads * head_dim]
mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s);

// The weights that one head of batch row 0 gives to the positions
// [begin, begin + count), for the last `rows` of the T queries: [rows, count].
// Arguments as in cached_attention; positions after the row's own weigh 0.
mx::array attention_weights(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int head,
    int rows,
    int begin,
    int count,
    mx::Stream s);

// Which heads' weights a self-attention should also give, as attention_weights
// does.
struct AttentionWatch {
  std::vector<int> heads;
  int rows = 0;
  int begin = 0;
  int count = 0;

  bool operator==(const AttentionWatch&) const = default;
};

struct SelfAttention {
  mx::array out; // [B, T, heads * head_dim]
  mx::array keys; // the caches, T positions longer
  mx::array values;
  std::vector<mx::array> weights; // [rows, count] for each watched head
};

// All of a layer's attention but its projections: rotates queries and keys,
// writes keys and values into the caches, attends.
// qkv: [B, T, 3 * heads * head_dim]; caches and `past` as above;
// frequencies as in rotary
SelfAttention self_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const mx::array& keys,
    const mx::array& values,
    int past,
    const AttentionWatch& watch,
    mx::Stream s);

// What a layer's heads need to let go of positions they hardly look at. Each
// head keeps the positions it has left one after the other, in their order.
struct Eviction {
  mx::array dropped; // [B, heads] int32: positions let go so far
  mx::array mass; // [B, heads, capacity] float32: weights each place was given
  float budget; // share of the positions after the first `kept` that is left
  int kept = 0; // positions that are never dropped
};

// The caches of one layer.
struct LayerCache {
  mx::array keys; // [B, heads, capacity, ...]
  mx::array values;
  // Where they were written in place: what whoever reads them next depends on.
  std::optional<mx::array> written = std::nullopt;
  std::optional<Eviction> eviction = std::nullopt; // on the CPU only
  // On a GPU, of the first layer that is run: what the next step may repeat.
  std::shared_ptr<gpu::DecoderStep> step = nullptr;
};

struct ProjectedAttention {
  mx::array x; // [B, T, hidden]
  LayerCache cache; // T positions longer
  std::vector<mx::array> weights; // as in SelfAttention
};

// residual + self_attention(...) · outᵀ: a layer's attention to its end.
ProjectedAttention projected_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const LayerCache& cache,
    int past,
    const AttentionWatch& watch,
    const Matrix& out,
    const mx::array& residual,
    mx::Stream s);

// Every query sees every key. q: [B, T, heads * head_dim]; k, v:
// [B, S, heads * head_dim] → [B, T, heads * head_dim]. On the CPU they are
// float32, or all bfloat16 for its matrix units.
mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s);

} // namespace nightingale::ops
