#pragma once

#include <optional>
#include <vector>

#include "nightingale/models/t3/config.h"
#include "nightingale/models/weights.h"
#include "nightingale/ops/decoder.h"

namespace nightingale {

// What a backbone is made of.
struct BackboneWeights {
  std::vector<ops::DecoderLayer> layers;
  ops::Norm norm; // after the last layer
  std::optional<mx::array> frequencies; // none: no rotary positions

  // Matrices that `weights` has in floats are quantized to `bits`, but for 0.
  // vectors: the type of norms and biases
  static BackboneWeights read(
      Weights& weights,
      const T3Config& config,
      int bits,
      mx::Dtype vectors,
      mx::Stream s);
};

} // namespace nightingale
