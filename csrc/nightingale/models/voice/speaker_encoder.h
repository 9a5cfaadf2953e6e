#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/voice/batch_norm.h"
#include "nightingale/models/weights.h"
#include "nightingale/ops/backend.h"

namespace nightingale {

// The speaker encoder's convolutions over frequency and time, which leave an
// eighth of the frequencies and all of the frames.
class SpeakerHead {
 public:
  SpeakerHead(Weights& weights, const std::string& name);

  // fbank: [frames, bands] → [1, frames, channels()]
  mx::array run(const mx::array& fbank, mx::Stream s) const;

  int channels() const;

 private:
  // Two convolutions beside a way around them.
  struct ResBlock {
    int stride; // over frequency
    NormedConv first, second;
    // Where bands are left out.
    std::optional<NormedConv> shortcut = std::nullopt;
  };

  ResBlock take_block(Weights& weights, const std::string& name, int stride)
      const;

  int width_; // channels of a frequency
  NormedConv entry_;
  std::vector<ResBlock> blocks_;
  NormedConv exit_;
};

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
