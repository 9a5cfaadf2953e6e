#pragma once

#include <vector>

#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// Attention of every frame over every frame of its batch row, of the queries,
// keys and values that one product gave. Scores are scaled by
// 1 / sqrt(head_dim). Frames are [batch, T, C] or [batch * T, C], as in
// nightingale/ops/resnet.h.

// qkv: 3 * heads * head_dim channels → heads * head_dim
mx::array
frame_attention(const mx::array& qkv, int batch, int heads, mx::Stream s);

// What relative_frame_attention is told about distance in each of `layers`: x
// times each of the matrices that stand one below the other in w.
// x: [2 T - 1, K]; w: [layers * heads * head_dim, K]; codes on the CPU only
std::vector<mx::array> project_positions(
    const mx::array& x,
    const Matrix& w,
    int layers,
    int heads,
    mx::Stream s);

// frame_attention whose scores also depend on how far apart query and key are:
// (q + content_bias) · k + (q + position_bias) · p, where query i and key j
// take row T - 1 - i + j of a layer's projected positions.
// qkv: one batch row of 3 * heads * head_dim channels; the biases:
// [heads * head_dim] → heads * head_dim channels
mx::array relative_frame_attention(
    const mx::array& qkv,
    const mx::array& positions,
    const mx::array& content_bias,
    const mx::array& position_bias,
    int heads,
    mx::Stream s);

} // namespace nightingale::ops
