#include "nightingale/ops/decoder.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

DecoderOutput decoder_layers(const DecoderInput& in, mx::Stream s) {
  return on_cpu(s) ? cpu::decoder_layers(in, s) : gpu::decoder_layers(in, s);
}

mx::array decoder_feed_forward(
    const mx::array& x,
    const DecoderLayer& layer,
    float eps,
    mx::Stream s) {
  return on_cpu(s) ? cpu::decoder_feed_forward(x, layer, eps, s)
                   : gpu::decoder_feed_forward(x, layer, eps, s);
}

} // namespace nightingale::ops
