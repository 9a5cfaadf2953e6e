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

struct FeedForwardInput {
  mx::array x; // [..., K], the attention's result
  mx::array residual; // [..., C]
  mx::Dtype dtype; // of the inputs of products
};

// inner = residual + out(x), sum = inner + down(gelu(up(norm(inner)))), of the
// residual's type.
mx::array feed_forward(
    const FeedForwardInput& in,
    const FeedForward& block,
    mx::Stream s);

// And the norm that the next block starts with, as `in.dtype`.
Normed feed_forward_norm(
    const FeedForwardInput& in,
    const FeedForward& block,
    const LayerNorm& next,
    mx::Stream s);

} // namespace nightingale::ops
