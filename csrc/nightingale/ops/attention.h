#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// Causal attention over KV caches. Scores are scaled by 1 / sqrt(head_dim).

// A cache holds [B, heads, capacity, head_dim] of a floating type, or is
// quantized: see nightingale/ops/quantized_cache.h.

// An empty cache for write_heads. On the CPU its memory is not touched, so that
// a capacity that is never reached costs nothing.
mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s);

struct CacheFork {
  int length; // positions taken from the prefix
  int batch;
  int capacity;
};

// A cache of `batch` rows that all start with the first `length` positions of
// `prefix`, otherwise as from make_cache.
// prefix: [1, heads, at least length, ...] → [batch, heads, capacity, ...]
mx::array
fork_cache(const mx::array& prefix, const CacheFork& fork, mx::Stream s);

// Writes the heads of x into positions [past, past + T) of a cache and returns
// it. The returned array takes over the cache's buffer; the argument must not
// be read past `past` afterwards.
// x: [B, T, heads * head_dim]
mx::array
write_heads(const mx::array& cache, const mx::array& x, int past, mx::Stream s);

// Which heads' attention weights to return: for each, what batch row 0 gives to
// the positions [begin, begin + count), for the last `rows` of the queries.
// Positions after a query's own have weight 0.
struct AttentionWatch {
  std::vector<int> heads;
  int rows = 0;
  int begin = 0;
  int count = 0;

  bool operator==(const AttentionWatch&) const = default;
};

// State of KV cache eviction: heads drop the positions that get the least
// attention and keep the remaining ones contiguous and in order.
struct Eviction {
  mx::array dropped; // [B, heads] int32: positions dropped so far
  mx::array mass; // [B, heads, capacity] float32: attention each entry got
  float budget; // share of the positions after the first `kept` that stays
  int kept = 0; // positions that are never dropped
};

// What a backend keeps between steps to repeat them; null where it has nothing.
struct RecordedStep {
  virtual ~RecordedStep() = default;
};

// The caches of one layer.
struct LayerCache {
  mx::array keys; // [B, heads, capacity, ...]
  mx::array values;
  // Where they were written in place: what their next reader must depend on.
  std::optional<mx::array> written = std::nullopt;
  std::optional<Eviction> eviction = std::nullopt; // on the CPU only
  std::shared_ptr<RecordedStep> step = nullptr; // of the first layer that runs
};

// T queries at the positions [past, past + T) of a cache that already holds
// them.
struct CachedQueries {
  mx::array q; // [B, T, heads * head_dim]
  int past;
};

// → [B, T, heads * head_dim]
mx::array cached_attention(
    const CachedQueries& queries,
    const LayerCache& cache,
    mx::Stream s);

// [rows, count] for each watched head.
std::vector<mx::array> attention_weights(
    const CachedQueries& queries,
    const mx::array& keys,
    const AttentionWatch& watch,
    mx::Stream s);

// The attention of one layer over T new positions.
struct AttentionInput {
  mx::array qkv; // [B, T, 3 * heads * head_dim]
  std::optional<mx::array> frequencies; // as in rotary; none: no rotation
  LayerCache cache; // with `past` positions
  int past;
  AttentionWatch watch = {};
};

struct SelfAttention {
  mx::array out; // [B, T, heads * head_dim]
  LayerCache cache; // T positions longer
  std::vector<mx::array> weights; // [rows, count] for each watched head
};

// All of a layer's attention but its projections: rotates queries and keys
// where there are frequencies, writes keys and values into the caches, attends,
// and evicts where the cache says so. Watched positions must be among those
// never dropped.
SelfAttention self_attention(const AttentionInput& in, mx::Stream s);

// residual + projection(self_attention(...)), in `out`: [B, T, hidden]
SelfAttention projected_attention(
    const AttentionInput& in,
    const Projection& projection,
    const mx::array& residual,
    mx::Stream s);

} // namespace nightingale::ops
