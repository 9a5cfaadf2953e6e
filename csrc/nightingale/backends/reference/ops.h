#pragma once

#include "nightingale/backends/common.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/lstm.h"
#include "nightingale/ops/rotary.h"

// The ops as graphs of MLX ops: what a GPU runs where it has no kernel of ours,
// and what the other implementations are tested against.

namespace nightingale::reference {

decltype(ops::activate) activate;
decltype(ops::leaky_relu) leaky_relu;
decltype(ops::snake) snake;
decltype(ops::swiglu) swiglu;
decltype(ops::cast) cast;

decltype(ops::rms_norm) rms_norm;
decltype(ops::layer_norm) layer_norm;
decltype(ops::norm_mish) norm_mish;
decltype(ops::linear_add_norm) linear_add_norm;

decltype(ops::linear) linear;
decltype(ops::norm_linear) norm_linear;
decltype(ops::norm_swiglu) norm_swiglu;

decltype(ops::feed_forward) feed_forward;
decltype(ops::feed_forward_norm) feed_forward_norm;

decltype(ops::embedding) embedding;
decltype(ops::embed_token) embed_token;

decltype(ops::rotary) rotary;

decltype(ops::lstm) lstm;

decltype(ops::make_cache) make_cache;
decltype(ops::fork_cache) fork_cache;
decltype(ops::write_heads) write_heads;
decltype(ops::cached_attention) cached_attention;
decltype(ops::attention_weights) attention_weights;
decltype(ops::self_attention) self_attention;
decltype(ops::projected_attention) projected_attention;

decltype(ops::full_attention) full_attention;
decltype(ops::relative_attention) relative_attention;
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

// `y`, a product that took `x` in, after the epilogue.
mx::array apply_epilogue(
    mx::array y,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    mx::Stream s);

// Vectors of a quantized cache, see nightingale/ops/quantized_cache.h.
// x: [..., head_dim] → [..., words] uint32, and back
mx::array encode_heads(const mx::array& x, int bits, mx::Stream s);
mx::array
decode_heads(const mx::array& rows, int bits, mx::Dtype dtype, mx::Stream s);

} // namespace nightingale::reference
