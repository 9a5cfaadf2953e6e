#pragma once

#include "nightingale/ops/attention.h"

namespace nightingale::gpu {

// Whether projected_attention below takes these: one new position of one or two
// rows, heads of 64.
bool can_use_decode_attention(
    const mx::array& qkv,
    const ops::LayerCache& cache,
    const ops::Matrix& out,
    mx::Stream s);

// How many parts the positions are taken in where `past` come before: steps of
// as many parts make the same launches.
int attention_parts(int past);

// As in nightingale/ops/attention.h, in two launches. The caches are written in
// place.
ops::ProjectedAttention projected_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const ops::LayerCache& cache,
    int past,
    const ops::AttentionWatch& watch,
    const ops::Matrix& out,
    const mx::array& residual,
    mx::Stream s);

} // namespace nightingale::gpu
