#pragma once

#include <vector>

#include "nightingale/io/weights.h"
#include "nightingale/models/voice/batch_norm.h"
#include "nightingale/models/voice/dense_block.h"
#include "nightingale/models/voice/speaker_head.h"
#include "nightingale/ops/backend.h"

namespace nightingale {

// CAMPPlus: the x-vector of a speaker, for the flow. Const after loading.
class SpeakerEncoder {
 public:
  // Reads the tensors "speaker_encoder.*" of an S3Gen checkpoint.
  SpeakerEncoder(Weights& weights, mx::Stream s);

  // samples: [n] at 16 kHz → [192]
  std::vector<float> embedding(const mx::array& samples) const;

 private:
  // A block, whose features are then combined to half as many.
  struct Stage {
    DenseBlock block;
    NormRelu norm;
    mx::array w;
  };

  static std::vector<Stage> take_stages(Weights& weights, int channels);

  mx::Stream stream_;
  SpeakerHead head_;
  NormedConv entry_;
  std::vector<Stage> stages_;
  NormRelu norm_;
  NormedConv dense_;
};

} // namespace nightingale
