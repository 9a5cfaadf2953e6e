#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/layers.h"
#include "nightingale/models/s3gen/config.h"

namespace nightingale {

// Speech tokens to the mean of their mel frames: a conformer that doubles the
// rate half-way.
class TokenEncoder {
 public:
  // flow: reads the tensors "flow.*"
  TokenEncoder(const LayerReader& flow, const FlowConfig& config);

  // The same weights for ops on `s`.
  TokenEncoder on(mx::Stream s) const {
    TokenEncoder moved = *this;
    moved.stream_ = s;
    return moved;
  }

  // → [1, 2 * tokens, mels] float32
  mx::array encode(const std::vector<int>& tokens) const;

 private:
  struct Layer {
    ops::LayerNorm attention_norm;
    Linear qkv;
    mx::array content_bias, position_bias;
    Linear out;
    ops::LayerNorm ffn_norm;
    Linear up, down;

    Layer(const LayerReader& layer, const FlowConfig& config);
  };
  // Layers at one rate.
  struct Stack {
    std::vector<Layer> layers;
    ops::Matrix position_w; // of all layers, one below the other

    Stack(
        const LayerReader& flow,
        const std::string& list,
        int count,
        const FlowConfig& config);
  };
  // A linear layer whose normed result is scaled by sqrt(width).
  struct Entry {
    Linear linear;
    ops::LayerNorm norm;

    Entry(const LayerReader& entry, int width);
  };

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
  Convolution ahead_, behind_;
  Stack stack_, upper_stack_;
  Convolution upsample_;
  ops::LayerNorm norm_;
  Linear mel_;
};

} // namespace nightingale
