#pragma once

#include "nightingale/ops/noise.h"
#include "nightingale/ops/ode.h"
#include "nightingale/ops/resnet.h"
#include "nightingale/ops/sampling.h"
#include "nightingale/ops/source.h"
#include "nightingale/ops/spectrum.h"

// What each backend implements of the convolution, signal processing and
// sampling ops. The headers in nightingale/ops/ document them.

namespace nightingale::cpu {

decltype(ops::conv1d) conv1d;
decltype(ops::conv_transpose1d) conv_transpose1d;

decltype(ops::stft) stft;
decltype(ops::polar_spectrum) polar_spectrum;
decltype(ops::istft) istft;
decltype(ops::power_spectrum) power_spectrum;

decltype(ops::start_phases) start_phases;
decltype(ops::frame_phases) frame_phases;
decltype(ops::harmonic_source) harmonic_source;
decltype(ops::normal_noise) normal_noise;

decltype(ops::euler_step) euler_step;

decltype(ops::guide) guide;
decltype(ops::filter_logits) filter_logits;
decltype(ops::draw_token) draw_token;
decltype(ops::forbid_token) forbid_token;
decltype(ops::mark_seen) mark_seen;
decltype(ops::alignment_step) alignment_step;

} // namespace nightingale::cpu

// Graphs of MLX ops: what a GPU runs where no kernel of ours fits, and what the
// other backends are tested against.
namespace nightingale::reference {

decltype(ops::conv1d) conv1d;
decltype(ops::conv_transpose1d) conv_transpose1d;

decltype(ops::stft) stft;
decltype(ops::polar_spectrum) polar_spectrum;
decltype(ops::istft) istft;

decltype(ops::harmonic_source) harmonic_source;
decltype(ops::normal_noise) normal_noise;
decltype(ops::euler_step) euler_step;

decltype(ops::guide) guide;
decltype(ops::filter_logits) filter_logits;
decltype(ops::draw_token) draw_token;
decltype(ops::forbid_token) forbid_token;
decltype(ops::mark_seen) mark_seen;
decltype(ops::alignment_step) alignment_step;

// Made of other ops, each of which runs on the stream's backend.
decltype(ops::streaming_conv1d) streaming_conv1d;
decltype(ops::streaming_conv_transpose1d) streaming_conv_transpose1d;
decltype(ops::add_frames) add_frames;
decltype(ops::mean_frames) mean_frames;
decltype(ops::centred_stft) centred_stft;
decltype(ops::waveform) waveform;
decltype(ops::causal_conv) causal_conv;
decltype(ops::normed_conv) normed_conv;
decltype(ops::resnet) resnet;
decltype(ops::choose_token) choose_token;

} // namespace nightingale::reference

// Kernels of ours where they fit, else the reference.
namespace nightingale::gpu {

// A kernel lays out the windows, MLX's matmul multiplies them: MLX's own
// convolution plans anew for every length on CUDA.
decltype(ops::conv1d) conv1d;
decltype(ops::conv_transpose1d) conv_transpose1d;

decltype(ops::make_filters) make_filters;
decltype(ops::streaming_conv1d) streaming_conv1d;
decltype(ops::streaming_conv_transpose1d) streaming_conv_transpose1d;
decltype(ops::add_frames) add_frames;
decltype(ops::mean_frames) mean_frames;

decltype(ops::centred_stft) centred_stft;
decltype(ops::waveform) waveform;
using reference::istft;
using reference::polar_spectrum;
using reference::stft;

decltype(ops::start_phases) start_phases;
decltype(ops::frame_phases) frame_phases;
decltype(ops::harmonic_source) harmonic_source;
decltype(ops::normal_noise) normal_noise;
decltype(ops::euler_step) euler_step;

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

decltype(ops::choose_token) choose_token; // one launch, if the kernel fits

// The rules as sample.metal reads them. Packed once per utterance: MLX keeps
// arrays that the host writes in managed memory, and the first kernel that
// reads one waits for a page fault.
mx::array pack_rules(const ops::TokenRules& rules);

using reference::alignment_step;
using reference::draw_token;
using reference::filter_logits;
using reference::forbid_token;
using reference::guide;
using reference::mark_seen;

} // namespace nightingale::gpu
