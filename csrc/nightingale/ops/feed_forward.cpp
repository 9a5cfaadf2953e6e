#include "nightingale/ops/feed_forward.h"

#include "nightingale/backends/gpu/tile_feed_forward.h"
#include "nightingale/ops/linear.h"

namespace nightingale::ops {

namespace {

struct Inner {
  mx::array sum, hidden;
};

Inner inner(
    const mx::array& x,
    const mx::array& residual,
    const FeedForward& block,
    mx::Dtype dtype,
    mx::Stream s) {
  auto in = linear_add_norm(
      x, block.out, block.out_b, residual, block.norm, dtype, s);
  auto hidden = linear(
      in.normed,
      block.up,
      {.bias = block.up_b, .activation = Activation::gelu},
      s);
  return {in.sum, hidden};
}

} // namespace

mx::array feed_forward(
    const mx::array& x,
    const mx::array& residual,
    const FeedForward& block,
    mx::Dtype dtype,
    mx::Stream s) {
  if (!on_cpu(s) && gpu::can_use_tile_feed_forward(x, block, dtype, s)) {
    return gpu::tile_feed_forward(x, residual, block, s);
  }
  auto [sum, hidden] = inner(x, residual, block, dtype, s);
  return linear(hidden, block.down, {.bias = block.down_b, .residual = sum}, s);
}

Normed feed_forward_norm(
    const mx::array& x,
    const mx::array& residual,
    const FeedForward& block,
    const LayerNorm& next,
    mx::Dtype dtype,
    mx::Stream s) {
  if (!on_cpu(s) && gpu::can_use_tile_feed_forward(x, block, dtype, s)) {
    return gpu::tile_feed_forward_norm(x, residual, block, next, s);
  }
  auto [sum, hidden] = inner(x, residual, block, dtype, s);
  return linear_add_norm(hidden, block.down, block.down_b, sum, next, dtype, s);
}

} // namespace nightingale::ops
