#pragma once

#include <array>
#include <vector>

#include "nightingale/models/hift/streaming_layers.h"

namespace nightingale {

constexpr int kPitchLayers = 5;

struct PitchState {
  std::array<ConvState, kPitchLayers> layers;
};

// Mel frames to their pitch.
class PitchPredictor {
 public:
  PitchPredictor(Weights& weights, mx::Stream s);

  // mel: [1, n, mels] → Hz of the frames that are ready: [1, m, 1]
  Frames forward(PitchState& state, Frames mel, bool last, mx::Stream s) const;

 private:
  std::vector<Conv> layers_;
  mx::array w_, b_;
};

} // namespace nightingale
