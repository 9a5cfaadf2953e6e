#pragma once

#include "nightingale/backends/reference/ops.h"

// The ops on a GPU. Those that are declared here choose between kernels of ours
// and MLX's ops; for the others no kernel of ours is faster than MLX's ops.

namespace nightingale::gpu {

decltype(ops::activate) activate;
decltype(ops::leaky_relu) leaky_relu;
decltype(ops::snake) snake;
using reference::cast;
using reference::swiglu;

using reference::layer_norm;
using reference::norm_mish;
using reference::rms_norm;
decltype(ops::linear_add_norm) linear_add_norm;

decltype(ops::linear) linear;
decltype(ops::norm_linear) norm_linear;
decltype(ops::norm_swiglu) norm_swiglu;

decltype(ops::feed_forward) feed_forward;
decltype(ops::feed_forward_norm) feed_forward_norm;

using reference::embedding;
decltype(ops::embed_token) embed_token;

using reference::rotary;

using reference::lstm;

using reference::attention_weights;
using reference::cached_attention;
using reference::fork_cache;
using reference::make_cache;
using reference::self_attention;
using reference::write_heads;
decltype(ops::projected_attention) projected_attention;

using reference::full_attention;
using reference::relative_attention;
decltype(ops::frame_attention) frame_attention;
decltype(ops::project_positions) project_positions;
decltype(ops::relative_frame_attention) relative_frame_attention;

decltype(ops::decoder_layers) decoder_layers;
decltype(ops::decoder_feed_forward) decoder_feed_forward;

inline constexpr backends::LayerOps kLayerOps{
    linear,
    norm_linear,
    norm_swiglu,
    linear_add_norm,
    self_attention,
    projected_attention};

decltype(ops::Matrix::quantized) quantize_matrix;
ops::Matrix
pack_matrix(const ops::QuantizedTensor& tensor, int bits, mx::Stream s);

} // namespace nightingale::gpu
