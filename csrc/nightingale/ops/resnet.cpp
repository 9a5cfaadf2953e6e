#include "nightingale/ops/resnet.h"

#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

CausalConv::CausalConv(Kernel w_, mx::array b_, mx::Stream s)
    : w(std::move(w_)), b(std::move(b_)) {
  if (!on_cpu(s)) {
    matrix = gpu::causal_conv_matrix(w, s);
  }
}

Resnet::Resnet(ResnetWeights weights, int skip)
    : ResnetWeights(std::move(weights)) {
  if (first.matrix && second.matrix) {
    matrix = gpu::resnet_matrix(*this);
  } else if (skip > 0) {
    int own = residual_w.columns() - skip;
    first_skip_w = first.w.channels_of(own, skip);
    first.w = first.w.channels_of(0, own);
    residual_skip_w = residual_w.columns_of(own, skip);
    residual_w = residual_w.columns_of(0, own);
  }
}

mx::array
causal_conv(const FrameInput& input, const CausalConv& conv, mx::Stream s) {
  return on_cpu(s) ? reference::causal_conv(input, conv, s)
                   : gpu::causal_conv(input, conv, s);
}

mx::array normed_conv(
    const FrameInput& input,
    const CausalConv& conv,
    const LayerNorm& norm,
    mx::Stream s) {
  return on_cpu(s) ? reference::normed_conv(input, conv, norm, s)
                   : gpu::normed_conv(input, conv, norm, s);
}

Normed resnet(
    const FrameInput& input,
    const Resnet& block,
    const ResnetContext& context,
    mx::Stream s) {
  return on_cpu(s) ? reference::resnet(input, block, context, s)
                   : gpu::resnet(input, block, context, s);
}

} // namespace nightingale::ops
