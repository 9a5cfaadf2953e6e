#pragma once

#include "nightingale/ops/attention.h"

namespace nightingale::cpu {

struct EvictingAttention {
  mx::array out; // [B, T, heads * head_dim]
  ops::LayerCache cache; // T positions longer, less what was dropped
  std::vector<mx::array> weights; // [rows, count] for each watched head
};

// self_attention over a cache with an Eviction, which drops what is over its
// budget afterwards. Watched positions must be among those always kept.
EvictingAttention evicting_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const ops::LayerCache& cache,
    int past,
    const ops::AttentionWatch& watch,
    mx::Stream s);

} // namespace nightingale::cpu
