#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/layers.h"

namespace nightingale {

// relu(x * scale + shift): batch normalisation that no convolution precedes.
// x: [..., C]
struct NormRelu {
  mx::array scale, shift; // [C]

  mx::array operator()(const mx::array& x, mx::Stream s) const;
};

// The speaker encoder's convolutions over frequency and time, which leave an
// eighth of the frequencies and all of the frames.
class SpeakerHead {
 public:
  explicit SpeakerHead(const LayerReader& head);

  // fbank: [frames, bands] → [1, frames, channels()]
  mx::array run(const mx::array& fbank, mx::Stream s) const;

  int channels() const;

 private:
  // Two convolutions beside a way around them.
  struct ResBlock {
    int stride; // over frequency
    Convolution first, second;
    // Where bands are left out.
    std::optional<Convolution> shortcut = std::nullopt;
  };

  int width_; // channels of a frequency
  Convolution entry_;
  std::vector<ResBlock> blocks_;
  Convolution exit_;
};

// Convolutions over time, each of which sees the features of all before it and
// adds a few of its own, masked by what the recording is like as a whole and
// around them.
class DenseBlock {
 public:
  // The layers "`name`.tdnnd1" and so on; channels: that enter
  DenseBlock(
      const LayerReader& xvector,
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
    Convolution narrow;
    ops::Kernel local_w;
    Linear context, mask;

    Layer(const LayerReader& layer, int channels);
  };

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
  SpeakerEncoder(Weights& weights, mx::Stream s)
      : SpeakerEncoder(LayerReader(weights, {s}, "speaker_encoder.")) {}

  // samples: [n] at 16 kHz → [192]
  std::vector<float> embedding(const mx::array& samples) const;

 private:
  // A block, whose features are then combined to half as many.
  struct Stage {
    DenseBlock block;
    NormRelu norm;
    ops::Kernel w;
  };

  explicit SpeakerEncoder(const LayerReader& reader);

  static std::vector<Stage> take_stages(
      const LayerReader& xvector,
      int channels);

  mx::Stream stream_;
  SpeakerHead head_;
  Convolution entry_;
  std::vector<Stage> stages_;
  NormRelu norm_;
  Convolution dense_;
};

} // namespace nightingale
