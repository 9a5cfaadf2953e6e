#pragma once

#include <string>
#include <vector>

#include "nightingale/checkpoint/weights.h"
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
    mx::array attention_norm_w, attention_norm_b;
    mx::array qkv_w, qkv_b;
    mx::array position_w;
    mx::array content_bias, position_bias;
    mx::array out_w, out_b;
    mx::array ffn_norm_w, ffn_norm_b;
    mx::array up_w, up_b;
    mx::array down_w, down_b;
  };
  // A linear layer whose normed result is scaled by sqrt(width).
  struct Entry {
    mx::array w, b;
    mx::array norm_w, norm_b;
  };

  static Layer take_layer(
      Weights& weights,
      const FlowConfig& config,
      std::string name,
      mx::Dtype product);
  static Entry
  take_entry(Weights& weights, const FlowConfig& config, std::string name);

  mx::array enter(const Entry& entry, const mx::array& x) const;
  mx::array look_ahead(const mx::array& x) const;
  mx::array upsample(const mx::array& x) const;
  mx::array run(const std::vector<Layer>& layers, mx::array x) const;
  // Sines and cosines of every distance from T - 1 down to 1 - T.
  mx::array distances(int length) const;

  int width_;
  mx::Stream stream_;
  mx::Dtype product_;
  mx::array table_;
  Entry entry_, upper_entry_;
  mx::array ahead_w_, ahead_b_;
  mx::array behind_w_, behind_b_;
  std::vector<Layer> layers_, upper_layers_;
  mx::array upsample_w_, upsample_b_;
  mx::array norm_w_, norm_b_;
  mx::array mel_w_, mel_b_;
};

} // namespace nightingale
