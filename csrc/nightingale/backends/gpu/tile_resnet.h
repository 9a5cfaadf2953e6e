#pragma once

#include "nightingale/ops/resnet.h"

namespace nightingale::gpu {

// Whether the kernels of tiles are for convolutions of this input, and should
// run on `s`.
bool can_use_tile_conv(
    const ops::ResnetInput& input,
    const ops::CausalConv& conv,
    mx::Dtype dtype,
    mx::Stream s);

// mish(layer_norm(conv(x))) (+ shift), [batch * T, O]: one launch.
mx::array tile_conv_norm(
    const ops::ResnetInput& input,
    int batch,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s);

// As ops::resnet: two launches.
ops::Normed tile_resnet(
    const ops::ResnetInput& input,
    int batch,
    const ops::Resnet& block,
    const mx::array& shift,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::gpu
