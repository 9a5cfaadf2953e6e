#pragma once

#include "nightingale/backends/common.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/lstm.h"
#include "nightingale/ops/rotary.h"

// The ops as CPU primitives.

namespace nightingale::cpu {

// Up to this many rows a linear or a cached attention runs as dot products,
// whose sums do not depend on the number of rows; above it tiles are faster.
constexpr int kDotRows = ops::kBatchInvariantRows;

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

// Whether decoder_layers runs them as one op: few rows, quantized weights,
// caches without eviction. The caches are then written in place, and the result
// is what their next reader depends on.
bool fits_fused_decoder(const ops::DecoderInput& in);

decltype(ops::Matrix::quantized) quantize_matrix;
ops::Matrix
pack_matrix(const ops::QuantizedTensor& tensor, int bits, mx::Stream s);
ops::QuantizedTensor unpack_matrix(const ops::Matrix& packed);
ops::Matrix
packed_columns(const ops::Matrix& packed, int begin, int count, int taps);

} // namespace nightingale::cpu
