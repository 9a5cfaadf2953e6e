#include "nightingale/ops/feed_forward.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array feed_forward(
    const FeedForwardInput& in,
    const FeedForward& block,
    mx::Stream s) {
  return on_cpu(s) ? cpu::feed_forward(in, block, s)
                   : gpu::feed_forward(in, block, s);
}

Normed feed_forward_norm(
    const FeedForwardInput& in,
    const FeedForward& block,
    const LayerNorm& next,
    mx::Stream s) {
  return on_cpu(s) ? cpu::feed_forward_norm(in, block, next, s)
                   : gpu::feed_forward_norm(in, block, next, s);
}

} // namespace nightingale::ops
