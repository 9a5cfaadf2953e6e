#pragma once

#include "nightingale/ops/resnet.h"

namespace nightingale::gpu {

// Whether the kernels of residual blocks run on `s`.
bool has_resnet(int inputs, int channels, mx::Stream s);

// As in nightingale/ops/resnet.h. Kernels lay the rows of three taps side by
// side, so that a convolution is one product, and do what stands between two
// products.
mx::array causal_conv(
    const mx::array& x,
    int batch,
    const ops::CausalConv& conv,
    mx::Dtype dtype,
    mx::Stream s);

mx::array normed_conv(
    const mx::array& x,
    int batch,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

ops::Normed resnet(
    const ops::ResnetInput& input,
    int batch,
    const ops::Resnet& block,
    const mx::array& shift,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::gpu
