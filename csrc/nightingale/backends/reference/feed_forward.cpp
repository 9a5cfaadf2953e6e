#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  return kLayerOps.feed_forward(in, block, s);
}

ops::Normed feed_forward_norm(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) {
  return kLayerOps.feed_forward_norm(in, block, next, s);
}

} // namespace nightingale::reference
