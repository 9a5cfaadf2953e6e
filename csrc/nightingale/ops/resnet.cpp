#include "nightingale/ops/resnet.h"

#include "nightingale/backends/gpu/ops.h"

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

} // namespace nightingale::ops
