#pragma once

#include <vector>

#include "nightingale/ops/attention.h"

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

// A layer to run.
struct DecoderRun {
  const DecoderLayer* layer;
  LayerCache* cache; // becomes T positions longer
  AttentionWatch watch;
};

// T positions that follow `past` others.
struct DecoderInput {
  mx::array x; // [B, T, hidden]
  std::vector<DecoderRun> runs; // one after the other
  mx::array frequencies; // as in rotary
  float eps; // of the norms
  int past;
};

struct DecoderOutput {
  mx::array x; // [B, T, hidden]
  std::vector<mx::array> weights; // of the watched heads, layer by layer
};

DecoderOutput decoder_layers(const DecoderInput& in, mx::Stream s);

// The part of a layer that follows its attention.
mx::array decoder_feed_forward(
    const mx::array& x,
    const DecoderLayer& layer,
    float eps,
    mx::Stream s);

} // namespace nightingale::ops
