#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

ops::DecoderOutput decoder_layers(const ops::DecoderInput& in, mx::Stream s) {
  return kLayerOps.decoder_layers(in, s);
}

mx::array decoder_feed_forward(
    const mx::array& x,
    const ops::DecoderLayer& layer,
    float eps,
    mx::Stream s) {
  return kLayerOps.decoder_feed_forward(x, layer, eps, s);
}

} // namespace nightingale::reference
