#pragma once

#include <array>
#include <string>

#include "nightingale/models/hift/streaming_layers.h"

namespace nightingale {

constexpr std::array<int, 3> kDilations{1, 3, 5};

struct ResBlockState {
  struct Layer {
    ConvState dilated, plain;
  };
  std::array<Layer, kDilations.size()> layers;
};

// Three residual pairs of convolutions, each preceded by Snake.
class ResBlock {
 public:
  ResBlock(
      Weights& weights,
      const std::string& name,
      int channels,
      int taps,
      const FilterFormat& format,
      mx::Stream s);

  Frames forward(ResBlockState& state, Frames x, bool last, mx::Stream s) const;

 private:
  struct Layer {
    mx::array dilated_alpha;
    Conv dilated;
    mx::array plain_alpha;
    Conv plain;
  };
  std::vector<Layer> layers_;
};

} // namespace nightingale
