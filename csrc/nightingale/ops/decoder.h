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

struct DecoderSteps {
  mx::array x; // [R, 1, hidden], the rows of each sequence in turn
  // Of the watched heads of each sequence, layer by layer.
  std::vector<std::vector<mx::array>> weights;
};

// decoder_layers of several sequences that take one position each, all by the
// same layers. Products are computed for all of them at once, so that the
// weights are read once. Each sequence has the result of decoder_layers where
// can_share_steps says so; an Error where a GPU runs the kernels of one
// sequence but not these. Of at most kSharedSequences sequences with
// kBatchInvariantRows rows together.
DecoderSteps decoder_steps(
    const std::vector<DecoderInput>& sequences,
    mx::Stream s);

constexpr int kSharedSequences = 8;

// Whether decoder_steps by such layers gives each sequence what it has alone,
// and with it a product with `head`. On a GPU sequences must have the same
// number of rows, too.
bool can_share_steps(
    const std::vector<DecoderLayer>& layers,
    const Projection& head,
    mx::Stream s);

// The part of a layer that follows its attention.
mx::array decoder_feed_forward(
    const mx::array& x,
    const DecoderLayer& layer,
    mx::Stream s);

} // namespace nightingale::ops
