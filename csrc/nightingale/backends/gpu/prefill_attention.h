#pragma once

#include "nightingale/ops/attention.h"

namespace nightingale::gpu {

// Whether prefill_attention takes these: heads of 64 that nobody watches.
bool can_use_prefill_attention(
    const mx::array& qkv,
    const ops::LayerCache& cache,
    const ops::AttentionWatch& watch,
    mx::Stream s);

// ops::projected_attention of any number of positions: one launch before MLX's
// own attention, or two where the caches are in codes. The caches are written
// in place.
ops::ProjectedAttention prefill_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const ops::LayerCache& cache,
    int past,
    const ops::Matrix& out,
    const mx::array& residual,
    mx::Stream s);

} // namespace nightingale::gpu
