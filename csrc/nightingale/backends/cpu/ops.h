#pragma once

#include "nightingale/backends/common.h"

// The ops as CPU primitives.

namespace nightingale::cpu {

// Up to this many rows a linear or a cached attention runs as dot products,
// whose sums do not depend on the number of rows; above it tiles are faster.
constexpr int kDotRows = ops::kBatchInvariantRows;

#define OP(parameters, name) decltype(ops::name) name;
#define COMPOSITE(parameters, name)
#include "nightingale/backends/ops.inl"

using namespace backends; // the composite ops, but for these

decltype(ops::decoder_layers) decoder_layers;
decltype(ops::decoder_steps) decoder_steps;
decltype(ops::choose_token) choose_token;
decltype(ops::feed_forward) feed_forward;
decltype(ops::feed_forward_norm) feed_forward_norm;

// Whether decoder_layers runs them as one op: few rows, quantized weights,
// caches without eviction. The caches are then written in place, and the result
// is what their next reader depends on.
bool fits_fused_decoder(const ops::DecoderInput& in);

decltype(ops::start_phases) start_phases;
decltype(ops::frame_phases) frame_phases;
decltype(ops::power_spectrum) power_spectrum;

decltype(ops::Matrix::quantized) quantize_matrix;
ops::Matrix
pack_matrix(const ops::QuantizedTensor& tensor, int bits, mx::Stream s);
ops::QuantizedTensor unpack_matrix(const ops::Matrix& packed);
ops::Matrix
packed_columns(const ops::Matrix& packed, int begin, int count, int taps);

} // namespace nightingale::cpu
