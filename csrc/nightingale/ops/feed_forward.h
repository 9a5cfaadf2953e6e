#pragma once

#include "nightingale/ops/norm.h"

namespace nightingale::ops {

// The weights of what follows the attention in a transformer block.
struct FeedForward {
  Matrix out; // [C, K]
  mx::array out_b;
  LayerNorm norm;
  Matrix up; // [F, C]
  mx::array up_b;
  Matrix down; // [C, F]
  mx::array down_b;
};

// inner = residual + out(x), sum = inner + down(gelu(up(norm(inner)))), of the
// residual's type. x: [..., K], as products take it; residual: [..., C]
mx::array feed_forward(
    const mx::array& x,
    const mx::array& residual,
    const FeedForward& block,
    mx::Dtype dtype,
    mx::Stream s);

// And the norm that the next block begins with, as `dtype`.
Normed feed_forward_norm(
    const mx::array& x,
    const mx::array& residual,
    const FeedForward& block,
    const LayerNorm& next,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::ops
