#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nightingale/checkpoint/weights.h"
#include "nightingale/ops/norm.h"
#include "nightingale/s3gen/config.h"

namespace nightingale {

// Speech tokens to the mean of their mel frames: a conformer that doubles the
// rate half-way.
class TokenEncoder {
 public:
  TokenEncoder(Weights& weights, const FlowConfig& config, mx::Stream s);

  // → [1, 2 * tokens, mels] float32
  mx::array encode(const std::vector<int>& tokens) const;

 private:
  struct Layer {
    ops::LayerNorm attention_norm;
    ops::Matrix qkv;
    mx::array qkv_b;
    mx::array content_bias, position_bias;
    ops::Matrix out;
    mx::array out_b;
    ops::LayerNorm ffn_norm;
    ops::Matrix up;
    mx::array up_b;
    ops::Matrix down;
    mx::array down_b;
  };
  // Layers at one rate.
  struct Stack {
    std::vector<Layer> layers;
    mx::array position_w; // of all layers, one below the other
  };
  // A linear layer whose normed result is scaled by sqrt(width).
  struct Entry {
    ops::Matrix w;
    mx::array b;
    ops::LayerNorm norm;
  };

  static Stack take_stack(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name,
      int layers,
      mx::Dtype product);
  static Layer take_layer(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name,
      mx::Dtype product);
  static Entry take_entry(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name);

  // Arrays of frames, as in nightingale/ops/resnet.h.
  mx::array enter(const Entry& entry, const mx::array& x) const;
  mx::array look_ahead(const mx::array& x) const;
  mx::array upsample(const mx::array& x) const;
  // Through a stack, and through the norm behind it where there is one.
  mx::array run(
      const Stack& stack,
      const mx::array& x,
      const mx::array& distance,
      const std::optional<ops::LayerNorm>& norm) const;
  // Sines and cosines of every distance from T - 1 down to 1 - T.
  mx::array distances(int length) const;

  int width_;
  mx::Stream stream_;
  mx::Dtype product_;
  mx::array table_;
  Entry entry_, upper_entry_;
  mx::array ahead_w_, ahead_b_;
  mx::array behind_w_, behind_b_;
  Stack stack_, upper_stack_;
  mx::array upsample_w_, upsample_b_;
  ops::LayerNorm norm_;
  ops::Matrix mel_w_;
  mx::array mel_b_;
};

} // namespace nightingale
