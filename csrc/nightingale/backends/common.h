#pragma once

#include "nightingale/ops/decoder.h"
#include "nightingale/ops/feed_forward.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"

// What the backends share.

namespace nightingale::backends {

// An Error where x · wᵀ cannot be: the sizes differ, or the weights are
// quantized for the other kind of processor.
void check_linear(const mx::array& x, const ops::Matrix& w, bool on_cpu);

// [B, T, heads * head_dim] each, of frames whose batch may be folded into T.
ops::AttentionHeads
split_qkv(const mx::array& qkv, int batch, int heads, mx::Stream s);

float attention_scale(int head_dim);

// [B, T, heads * head_dim] → [B, heads, T, head_dim], and back
mx::array split_heads(const mx::array& x, int heads, mx::Stream s);
mx::array merge_heads(const mx::array& x, mx::Stream s);

// Positions [0, length) of a cache.
mx::array first_positions(const mx::array& cache, int length, mx::Stream s);

// Ops that are sequences of a backend's other ops.
struct LayerOps {
  decltype(ops::linear)* linear;
  decltype(ops::norm_linear)* norm_linear;
  decltype(ops::norm_swiglu)* norm_swiglu;
  decltype(ops::linear_add_norm)* linear_add_norm;
  decltype(ops::self_attention)* self_attention;
  decltype(ops::projected_attention)* projected_attention;

  mx::array feed_forward(
      const ops::FeedForwardInput& in,
      const ops::FeedForward& block,
      mx::Stream s) const;
  ops::Normed feed_forward_norm(
      const ops::FeedForwardInput& in,
      const ops::FeedForward& block,
      const ops::LayerNorm& next,
      mx::Stream s) const;

  // self_attention, then the projection.
  ops::SelfAttention attend_and_project(
      const ops::AttentionInput& in,
      const ops::Matrix& projection,
      const mx::array& residual,
      mx::Stream s) const;

  // One product for each layer, or one for all where they are quantized.
  std::vector<mx::array> project_positions(
      const mx::array& x,
      const ops::PositionWeights& weights,
      mx::Stream s) const;

  mx::array decoder_feed_forward(
      const mx::array& x,
      const ops::DecoderLayer& layer,
      float eps,
      mx::Stream s) const;

  // Layer by layer.
  ops::DecoderOutput decoder_layers(const ops::DecoderInput& in, mx::Stream s)
      const;
};

} // namespace nightingale::backends
