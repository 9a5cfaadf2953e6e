#include "nightingale/models/voice/speaker_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

namespace {

constexpr int kBands = 80; // of the input
constexpr int kTaps = 3; // of all convolutions but the first over time
constexpr int kStride = 2; // over frequency, where bands are left out

int output_bands(int bands, int stride) {
  return (bands - 1) / stride + 1;
}

NormedConv take_conv(
    Weights& weights,
    const std::string& conv,
    const std::string& norm,
    int outputs,
    int inputs) {
  return NormedConv::take_2d(
      weights,
      conv,
      {outputs, inputs, kTaps, kTaps},
      BatchNorm::take(weights, norm, outputs));
}

// Every `stride`-th band with those beside it, zeros beyond the ends.
// x: [bands, frames, C] → [bands / stride, frames, 3 * C]
mx::array with_neighbours(const mx::array& x, int stride, mx::Stream s) {
  int frames = x.shape(1), channels = x.shape(2);
  int bands = output_bands(x.shape(0), stride), band_size = frames * channels;
  auto padded =
      mx::pad(x, {{1, 1}, {0, 0}, {0, 0}}, mx::array(0.0f), "constant", s);
  auto neighbours = mx::as_strided(
      padded,
      {bands, frames, kTaps, channels},
      {stride * band_size, channels, band_size, 1},
      0,
      s);
  return mx::reshape(neighbours, {bands, frames, kTaps * channels}, s);
}

// x: [bands, frames, C] → [bands / stride, frames, O]
mx::array convolve(
    const mx::array& x,
    const NormedConv& conv,
    int stride,
    ops::Epilogue epilogue,
    mx::Stream s) {
  epilogue.bias = conv.b;
  return ops::conv1d(
      with_neighbours(x, stride, s),
      conv.w,
      {{.pad_left = 1, .pad_right = 1}, epilogue},
      s);
}

// The bands that a convolution of this stride is centred on.
mx::array centres(const mx::array& x, int stride, mx::Stream s) {
  return mx::slice(x, {0, 0, 0}, x.shape(), {stride, 1, 1}, s);
}

} // namespace

SpeakerHead::SpeakerHead(Weights& weights, const std::string& name)
    : width_(size_of(weights.file(), name + "conv1.weight", 4, 0)),
      entry_(take_conv(weights, name + "conv1", name + "bn1", width_, 1)),
      exit_(take_conv(weights, name + "conv2", name + "bn2", width_, width_)) {
  for (std::string group : {"layer1.", "layer2."}) {
    int count = std::max(1, count_layers(weights.file(), name + group));
    for (int i = 0; i < count; ++i) {
      std::string block = name + group + std::to_string(i) + ".";
      blocks_.push_back(take_block(weights, block, i == 0 ? kStride : 1));
    }
  }
}

SpeakerHead::ResBlock SpeakerHead::take_block(
    Weights& weights,
    const std::string& name,
    int stride) const {
  ResBlock block{
      stride,
      take_conv(weights, name + "conv1", name + "bn1", width_, width_),
      take_conv(weights, name + "conv2", name + "bn2", width_, width_)};
  if (stride != 1) {
    block.shortcut = NormedConv::take_2d(
        weights,
        name + "shortcut.0",
        {width_, width_, 1, 1},
        BatchNorm::take(weights, name + "shortcut.1", width_));
  }
  return block;
}

int SpeakerHead::channels() const {
  int bands = kBands;
  for (const auto& block : blocks_) {
    bands = output_bands(bands, block.stride);
  }
  return width_ * output_bands(bands, kStride);
}

mx::array SpeakerHead::run(const mx::array& fbank, mx::Stream s) const {
  constexpr auto relu = ops::Activation::relu;
  auto x = mx::expand_dims(mx::transpose(fbank, s), 2, s);
  x = convolve(x, entry_, 1, {.activation = relu}, s);
  for (const auto& block : blocks_) {
    auto around = x;
    if (block.shortcut) {
      around = ops::conv1d(
          centres(x, block.stride, s),
          block.shortcut->w,
          {{}, {.bias = block.shortcut->b}},
          s);
    }
    auto hidden =
        convolve(x, block.first, block.stride, {.activation = relu}, s);
    auto sum = convolve(hidden, block.second, 1, {.residual = around}, s);
    x = ops::activate(sum, relu, s);
  }
  x = convolve(x, exit_, kStride, {.activation = relu}, s);
  // The next layer counts all bands of a channel before the next channel's.
  return mx::reshape(
      mx::transpose(x, {1, 2, 0}, s), {1, fbank.shape(0), channels()}, s);
}

namespace {

constexpr int kSegment = 100; // frames that share a mask

// The mean of each segment, plus that of the whole; the last segment may be
// short. x: [1, T, C] → [T / 100, C]
mx::array context_of(const mx::array& x, mx::Stream s) {
  int frames = x.shape(1), channels = x.shape(2);
  int segments = (frames + kSegment - 1) / kSegment;
  int missing = segments * kSegment - frames;
  auto padded = mx::pad(
      x, {{0, 0}, {0, missing}, {0, 0}}, mx::array(0.0f), "constant", s);
  auto sums = mx::sum(
      mx::reshape(padded, {segments, kSegment, channels}, s), 1, false, s);
  std::vector<float> shares(segments, 1.0f / kSegment);
  shares.back() = 1.0f / (kSegment - missing);
  auto means = mx::multiply(sums, mx::array(shares.begin(), {segments, 1}), s);
  auto whole =
      mx::multiply(mx::sum(sums, 0, true, s), mx::array(1.0f / frames), s);
  return mx::add(means, whole, s);
}

// The kernel of a convolution of one tap. expected: [O, C]
mx::array take_pointwise(
    Weights& weights,
    const std::string& layer,
    const mx::Shape& expected) {
  auto w = weights.take(
      layer + ".weight", {expected[0], expected[1], 1}, mx::float32);
  return ops::computed(
      mx::reshape(w, {w.shape(0), w.shape(1)}, mx::Device::cpu));
}

} // namespace

DenseBlock::DenseBlock(
    Weights& weights,
    const std::string& name,
    int channels,
    int dilation)
    : channels_(channels), dilation_(dilation) {
  std::string layer = name + ".tdnnd";
  int end = std::max(2, count_layers(weights.file(), layer));
  for (int i = 1; i < end; ++i) {
    std::string number = std::to_string(i);
    layers_.push_back(take_layer(weights, layer + number + ".", channels_));
    channels_ += layers_.back().local_w.shape(0);
  }
}

DenseBlock::Layer DenseBlock::take_layer(
    Weights& weights,
    const std::string& name,
    int channels) {
  std::string cam = name + "cam_layer.";
  auto outputs_of = [&](const std::string& layer) {
    return size_of(weights.file(), layer + ".weight", 3, 0);
  };
  int width = outputs_of(name + "linear1");
  int growth = outputs_of(cam + "linear_local");
  int context = outputs_of(cam + "linear1");
  return {
      NormRelu::take(weights, name + "nonlinear1.batchnorm", channels),
      NormedConv::take(
          weights,
          name + "linear1",
          {width, channels, 1},
          BatchNorm::take(weights, name + "nonlinear2.batchnorm", width)),
      weights.take_conv(
          cam + "linear_local", {growth, width, kTaps}, mx::float32),
      take_pointwise(weights, cam + "linear1", {context, width}),
      weights.take(cam + "linear1.bias", {context}, mx::float32),
      take_pointwise(weights, cam + "linear2", {growth, context}),
      weights.take(cam + "linear2.bias", {growth}, mx::float32)};
}

mx::array DenseBlock::features(
    const Layer& layer,
    const mx::array& x,
    mx::Stream s) const {
  constexpr auto relu = ops::Activation::relu;
  auto narrow = ops::conv1d(
      layer.norm(x, s),
      layer.narrow.w,
      {{}, {.bias = layer.narrow.b, .activation = relu}},
      s);
  auto local = ops::conv1d(
      narrow,
      layer.local_w,
      {{.dilation = dilation_, .pad_left = dilation_, .pad_right = dilation_}},
      s);
  auto context = ops::linear(
      context_of(narrow, s),
      layer.context_w,
      {.bias = layer.context_b, .activation = relu},
      s);
  auto masks = mx::sigmoid(
      ops::linear(context, layer.mask_w, {.bias = layer.mask_b}, s), s);
  auto mask = mx::slice(
      mx::repeat(masks, kSegment, 0, s),
      {0, 0},
      {local.shape(1), local.shape(2)},
      s);
  return mx::multiply(local, mask, s);
}

mx::array DenseBlock::run(mx::array x, mx::Stream s) const {
  for (const auto& layer : layers_) {
    x = mx::concatenate({x, features(layer, x, s)}, 2, s);
  }
  return x;
}

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
