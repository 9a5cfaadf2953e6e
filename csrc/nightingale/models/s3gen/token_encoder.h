#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/s3gen/config.h"
#include "nightingale/models/weights.h"
#include "nightingale/ops/norm.h"

namespace nightingale {

// Speech tokens to the mean of their mel frames: a conformer that doubles the
// rate half-way.
class TokenEncoder {
 public:
  // Matrices and kernels quantized to `bits`, in floats where that is 0.
  TokenEncoder(
      Weights& weights,
      const FlowConfig& config,
      int bits,
      mx::Stream s);

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
    ops::Matrix position_w; // of all layers, one below the other
  };
  // A linear layer whose normed result is scaled by sqrt(width).
  struct Entry {
    ops::Matrix w;
    mx::array b;
    ops::LayerNorm norm;
  };

  Stack take_stack(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name,
      int layers) const;
  Layer take_layer(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name) const;
  Entry take_entry(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name) const;
  ops::Matrix take_matrix(
      Weights& weights,
      const std::vector<std::string>& names,
      const mx::Shape& expected_each) const;
  ops::Kernel take_conv(Weights& weights, const std::string& name, int taps)
      const;

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
  int bits_;
  mx::Stream stream_;
  mx::Dtype product_;
  mx::array table_;
  Entry entry_, upper_entry_;
  ops::Kernel ahead_w_;
  mx::array ahead_b_;
  ops::Kernel behind_w_;
  mx::array behind_b_;
  Stack stack_, upper_stack_;
  ops::Kernel upsample_w_;
  mx::array upsample_b_;
  ops::LayerNorm norm_;
  ops::Matrix mel_w_;
  mx::array mel_b_;
};

} // namespace nightingale
