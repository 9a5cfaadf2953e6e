#pragma once

#include "nightingale/ops/feed_forward.h"

namespace nightingale::gpu {

// Whether tile_feed_forward is for these products of `dtype`.
bool fits_tile_feed_forward(
    const mx::array& x,
    const ops::FeedForward& block,
    mx::Dtype dtype);
// And it should run on `s`.
bool can_use_tile_feed_forward(
    const mx::array& x,
    const ops::FeedForward& block,
    mx::Dtype dtype,
    mx::Stream s);

// As in nightingale/ops/feed_forward.h, for what fits: one launch.
mx::array tile_feed_forward(
    const mx::array& x,
    const mx::array& residual,
    const ops::FeedForward& block,
    mx::Stream s);
ops::Normed tile_feed_forward_norm(
    const mx::array& x,
    const mx::array& residual,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s);

} // namespace nightingale::gpu
