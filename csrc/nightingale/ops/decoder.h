#pragma once

#include <vector>

#include "nightingale/ops/attention.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// The weights of one layer of a Llama.
struct DecoderLayer {
  mx::array attention_norm;
  Matrix qkv; // [3 * hidden, hidden]
  Matrix out;
  mx::array ffn_norm;
  Matrix gate_up; // [2 * ffn, hidden]
  Matrix down;
};

// A layer that is run.
struct DecoderRun {
  const DecoderLayer* layer;
  LayerCache* cache; // becomes T positions longer
  AttentionWatch watch;
};

// Layers one after the other, over T positions that follow `past` others. What
// the watched heads give is added to `weights`, layer by layer.
// x: [B, T, hidden] → [B, T, hidden]
mx::array decoder_layers(
    const mx::array& x,
    const std::vector<DecoderRun>& runs,
    const mx::array& frequencies,
    float eps,
    int past,
    std::vector<mx::array>& weights,
    mx::Stream s);

// What a layer does after its attention.
mx::array decoder_feed_forward(
    const mx::array& x,
    const DecoderLayer& layer,
    float eps,
    mx::Stream s);

} // namespace nightingale::ops
