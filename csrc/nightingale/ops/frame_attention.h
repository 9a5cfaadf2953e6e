#pragma once

#include <vector>

#include "nightingale/ops/frame_layout.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// Attention in which every query sees every key. Scores are scaled by
// 1 / sqrt(head_dim). Frames are [batch, T, C] or [batch * T, C], as in
// nightingale/ops/resnet.h.

// On the CPU float32, or all bfloat16 for its matrix units.
struct AttentionHeads {
  mx::array q; // [B, T, heads * head_dim]
  mx::array k; // [B, S, heads * head_dim]
  mx::array v;
  int heads;
};

// → [B, T, heads * head_dim]
mx::array full_attention(const AttentionHeads& in, mx::Stream s);

// Scores that also depend on how far apart query and key are:
// (q + content_bias) · k + (q + position_bias) · p, where query i and key j
// take row T - 1 - i + j of the positions, and S = T.
struct RelativePositions {
  mx::array positions; // [2 T - 1, heads * head_dim], or a project_positions
  mx::array content_bias; // [heads * head_dim]
  mx::array position_bias;
};

mx::array relative_attention(
    const AttentionHeads& in,
    const RelativePositions& relative,
    mx::Stream s);

// full_attention of the queries, keys and values that one product gave.
// qkv: 3 * heads * head_dim channels → heads * head_dim
mx::array frame_attention(
    const mx::array& qkv,
    const FrameLayout& layout,
    int heads,
    mx::Stream s);

// The matrices of several layers, one below the other.
struct PositionWeights {
  Matrix w; // [layers * heads * head_dim, K]; quantized on the CPU only
  int layers;
  int heads;
};

// The positions that relative_frame_attention takes, for each layer.
// x: [2 T - 1, K]
std::vector<mx::array> project_positions(
    const mx::array& x,
    const PositionWeights& weights,
    mx::Stream s);

// relative_attention of the queries, keys and values that one product gave.
// qkv: one batch row of 3 * heads * head_dim channels; positions by
// project_positions → heads * head_dim channels
mx::array relative_frame_attention(
    const mx::array& qkv,
    const RelativePositions& relative,
    int heads,
    mx::Stream s);

} // namespace nightingale::ops
