#pragma once

#include <vector>

#include "nightingale/models/layers.h"
#include "nightingale/ops/lstm.h"

namespace nightingale {

// The LSTM that tells speakers apart for T3: the mean over overlapping parts of
// a recording, of unit length. Const after loading.
class VoiceEncoder {
 public:
  // Reads the tensors of ve.safetensors.
  VoiceEncoder(Weights& weights, mx::Stream s);

  // samples: [n] at 16 kHz; what is 20 dB below the loudest is cut off both
  // ends → [256]
  std::vector<float> embedding(const std::vector<float>& samples) const;

 private:
  // mel: [frames, mels] → [parts, 256], before they are scaled
  mx::array embed_parts(const mx::array& mel) const;

  mx::Stream stream_;
  std::vector<ops::LstmWeights> layers_;
  Linear proj_;
};

} // namespace nightingale
