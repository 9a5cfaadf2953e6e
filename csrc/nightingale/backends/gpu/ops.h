#pragma once

#include "nightingale/backends/reference/ops.h"

// The ops on a GPU. Those that are declared here choose between kernels of ours
// and MLX's ops; for the others no kernel of ours is faster.

namespace nightingale::gpu {

using namespace backends;
using namespace reference;

decltype(ops::activate) activate;
decltype(ops::leaky_relu) leaky_relu;
decltype(ops::snake) snake;

decltype(ops::linear_add_norm) linear_add_norm;

decltype(ops::linear) linear;
decltype(ops::norm_linear) norm_linear;
decltype(ops::norm_swiglu) norm_swiglu;

decltype(ops::feed_forward) feed_forward;
decltype(ops::feed_forward_norm) feed_forward_norm;

decltype(ops::embed_token) embed_token;

decltype(ops::projected_attention) projected_attention;

decltype(ops::frame_attention) frame_attention;
decltype(ops::project_positions) project_positions;
decltype(ops::relative_frame_attention) relative_frame_attention;

decltype(ops::decoder_layers) decoder_layers;
decltype(ops::decoder_steps) decoder_steps;
decltype(ops::can_share_steps) can_share_steps;
decltype(ops::decoder_feed_forward) decoder_feed_forward;

// A kernel lays out the windows, MLX's matmul multiplies them: MLX's own
// convolution plans anew for every length on CUDA.
decltype(ops::conv1d) conv1d;
decltype(ops::conv_transpose1d) conv_transpose1d;

decltype(ops::make_filters) make_filters;
decltype(ops::streaming_conv1d) streaming_conv1d;
decltype(ops::streaming_conv_transpose1d) streaming_conv_transpose1d;
decltype(ops::add_frames) add_frames;
decltype(ops::mean_frames) mean_frames;

decltype(ops::causal_conv) causal_conv;
decltype(ops::normed_conv) normed_conv;
decltype(ops::resnet) resnet;

// The weights as the kernels of residual blocks read them: [O, 3 * C], or
// nothing where the kernels do not take these sizes.
std::optional<ops::Matrix> causal_conv_matrix(
    const ops::Kernel& w,
    mx::Stream s);
// first and residual below each other: [2 * O, 3 * C]
ops::Matrix resnet_matrix(const ops::ResnetWeights& weights);

decltype(ops::centred_stft) centred_stft;
decltype(ops::waveform) waveform;

decltype(ops::start_phases) start_phases;
decltype(ops::frame_phases) frame_phases;
decltype(ops::harmonic_source) harmonic_source;
decltype(ops::normal_noise) normal_noise;

decltype(ops::euler_step) euler_step;
decltype(ops::can_share_frames) can_share_frames;
decltype(ops::join_inputs) join_inputs;

decltype(ops::choose_token) choose_token; // one launch, if the kernel fits

// The rules as sample.metal reads them. Packed once per utterance: MLX keeps
// arrays that the host writes in managed memory, and the first kernel that
// reads one waits for a page fault.
mx::array pack_rules(const ops::TokenRules& rules);

decltype(ops::Matrix::quantized) quantize_matrix;
ops::Matrix
pack_matrix(const ops::QuantizedTensor& tensor, int bits, mx::Stream s);

} // namespace nightingale::gpu
