#include "nightingale/models/voice/speaker_encoder.h"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "mlx/transforms.h"
#include "nightingale/io/tensor_sizes.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/ops/convolution.h"

namespace nightingale {

namespace {

constexpr std::array kDilations{1, 2, 2}; // of the blocks
constexpr int kEntryTaps = 5;
constexpr int kEntryStride = 2;
constexpr int kLeastFrames = kEntryStride + 1; // for a deviation in time

const std::string kEncoder = "speaker_encoder.";
const std::string kVector = kEncoder + "xvector.";

// Mean and deviation of each channel in time. x: [1, T, C] → [1, 1, 2C]
mx::array statistics(const mx::array& x) {
  int frames = x.shape(1), channels = x.shape(2);
  const float* values = x.data<float>();
  std::vector<float> pooled(2 * channels);
  for (int c = 0; c < channels; ++c) {
    double sum = 0, squares = 0;
    for (int t = 0; t < frames; ++t) {
      sum += values[int64_t(t) * channels + c];
    }
    double mean = sum / frames;
    for (int t = 0; t < frames; ++t) {
      double distance = values[int64_t(t) * channels + c] - mean;
      squares += distance * distance;
    }
    pooled[c] = static_cast<float>(mean);
    pooled[channels + c] =
        static_cast<float>(std::sqrt(squares / (frames - 1)));
  }
  return mx::array(pooled.begin(), {1, 1, 2 * channels});
}

int outputs_of(const Weights& weights, const std::string& layer) {
  return size_of(weights.file(), layer + ".weight", 3, 0);
}

NormedConv take_conv(
    Weights& weights,
    const std::string& name,
    int inputs,
    int taps,
    bool affine = true) {
  int outputs = outputs_of(weights, name + ".linear");
  return NormedConv::take(
      weights,
      name + ".linear",
      {outputs, inputs, taps},
      BatchNorm::take(weights, name + ".nonlinear.batchnorm", outputs, affine));
}

} // namespace

SpeakerEncoder::SpeakerEncoder(Weights& weights, mx::Stream s)
    : stream_(s),
      head_(weights, kEncoder + "head."),
      entry_(
          take_conv(weights, kVector + "tdnn", head_.channels(), kEntryTaps)),
      stages_(take_stages(weights, entry_.w.shape(0))),
      norm_(NormRelu::take(
          weights,
          kVector + "out_nonlinear.batchnorm",
          stages_.back().w.shape(0))),
      dense_(take_conv(
          weights,
          kVector + "dense",
          2 * stages_.back().w.shape(0),
          1,
          false)) {}

std::vector<SpeakerEncoder::Stage> SpeakerEncoder::take_stages(
    Weights& weights,
    int channels) {
  std::vector<Stage> stages;
  for (int dilation : kDilations) {
    std::string number = std::to_string(stages.size() + 1);
    DenseBlock block(weights, kVector + "block" + number, channels, dilation);
    std::string transit = kVector + "transit" + number;
    int inputs = block.channels();
    channels = outputs_of(weights, transit + ".linear");
    stages.push_back(
        {std::move(block),
         NormRelu::take(weights, transit + ".nonlinear.batchnorm", inputs),
         weights.take_conv(
             transit + ".linear", {channels, inputs, 1}, mx::float32)});
  }
  return stages;
}

std::vector<float> SpeakerEncoder::embedding(const mx::array& samples) const {
  auto fbank = kaldi_fbank(samples, stream_);
  if (fbank.shape(0) < kLeastFrames) {
    throw std::invalid_argument(
        "the recording is too short to tell its speaker: " +
        std::to_string(samples.shape(0)) + " samples");
  }
  auto x = ops::conv1d(
      head_.run(fbank, stream_),
      entry_.w,
      {{.stride = kEntryStride,
        .pad_left = kEntryTaps / 2,
        .pad_right = kEntryTaps / 2},
       {.bias = entry_.b, .activation = ops::Activation::relu}},
      stream_);
  for (const auto& stage : stages_) {
    x = stage.norm(stage.block.run(x, stream_), stream_);
    x = ops::conv1d(x, stage.w, {}, stream_);
  }
  x = norm_(x, stream_);
  mx::eval(x);
  auto vector =
      ops::conv1d(statistics(x), dense_.w, {{}, {.bias = dense_.b}}, stream_);
  mx::eval(vector);
  return {vector.data<float>(), vector.data<float>() + vector.size()};
}

} // namespace nightingale
