#pragma once

#include <string>
#include <vector>

#include "nightingale/models/voice/batch_norm.h"

namespace nightingale {

// Convolutions over time, each of which sees the features of all before it and
// adds a few of its own, masked by what the recording is like as a whole and
// around them.
class DenseBlock {
 public:
  // channels: that enter
  DenseBlock(
      Weights& weights,
      const std::string& name,
      int channels,
      int dilation);

  // x: [1, T, channels] → [1, T, channels()]
  mx::array run(mx::array x, mx::Stream s) const;

  int channels() const {
    return channels_;
  }

 private:
  struct Layer {
    NormRelu norm;
    NormedConv narrow;
    mx::array local_w;
    mx::array context_w, context_b;
    mx::array mask_w, mask_b;
  };

  static Layer
  take_layer(Weights& weights, const std::string& name, int channels);

  // The new features of a layer. x: [1, T, C]
  mx::array features(const Layer& layer, const mx::array& x, mx::Stream s)
      const;

  int channels_;
  int dilation_;
  std::vector<Layer> layers_;
};

} // namespace nightingale
