#pragma once

#include <array>
#include <string>

#include "nightingale/models/hift/streaming_layers.h"

namespace nightingale {

constexpr std::array<int, 3> kDilations{1, 3, 5};

struct ResBlockState {
  struct Layer {
    ConvTail wide, narrow;
  };
  std::array<Layer, kDilations.size()> layers;
};

// Three residual pairs of convolutions with Snake before each.
class ResBlock {
 public:
  ResBlock(
      Weights& weights,
      const std::string& name,
      int channels,
      int taps,
      const FilterForm& form,
      mx::Stream s);

  Frames feed(ResBlockState& state, Frames x, bool last, mx::Stream s) const;

 private:
  struct Layer {
    mx::array wide_alpha;
    Conv wide; // dilated
    mx::array narrow_alpha;
    Conv narrow;
  };
  std::vector<Layer> layers_;
};

} // namespace nightingale
