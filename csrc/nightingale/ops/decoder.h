#pragma once

#include <vector>

#include "nightingale/ops/activation.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/norm.h"

namespace nightingale::ops {

// The weights of one layer, of a Llama or of a GPT-2: x + out(attention(qkv(
// norm(x)))), and of that x + down(f(up(norm(x)))).
struct DecoderLayer {
  Norm attention_norm;
  Projection qkv; // [3 * hidden, hidden]
  Projection out;
  Norm ffn_norm;
  Projection up; // [ffn, hidden]; with swiglu twice the rows, the gate's first
  Projection down;
  std::optional<Activation> activation = std::nullopt; // f; none: swiglu
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
  std::optional<mx::array> frequencies; // as in rotary; none: no rotation
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
    mx::Stream s);

} // namespace nightingale::ops
