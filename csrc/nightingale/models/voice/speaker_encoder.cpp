#include "nightingale/models/voice/speaker_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/convolution.h"

namespace nightingale {

namespace {

constexpr double kNormEps = 1e-5;
constexpr int kBands = 80; // of the input
constexpr int kTaps = 3; // of all convolutions but the first over time
constexpr int kStride = 2; // over frequency, where bands are left out

int output_bands(int bands, int stride) {
  return (bands - 1) / stride + 1;
}

mx::array as_array(const std::vector<double>& values) {
  std::vector<float> rounded(values.begin(), values.end());
  return mx::array(rounded.begin(), {static_cast<int>(rounded.size())});
}

// Scales each output of a kernel in place. w: [O, ...]
void scale_outputs(mx::array& w, const std::vector<double>& scale) {
  float* value = w.data<float>();
  for (size_t o = 0; o < scale.size(); ++o) {
    float* end = w.data<float>() + (o + 1) * w.strides(0);
    for (; value < end; ++value) {
      *value = static_cast<float>(*value * scale[o]);
    }
  }
}

// [O, C, bands, taps] → [O, taps, bands * C]
mx::array bands_as_channels(const mx::array& w) {
  auto cpu = mx::Device::cpu;
  mx::Shape shape{w.shape(0), w.shape(3), w.shape(2) * w.shape(1)};
  return ops::computed(
      mx::reshape(mx::transpose(w, {0, 3, 2, 1}, cpu), shape, cpu));
}

// Batch normalisation that is no longer trained: a scale and a shift of each
// channel.
struct BatchNorm {
  std::vector<double> scale, shift;

  // affine: with a trained scale and shift on top
  BatchNorm(
      const LayerReader& reader,
      const std::string& name,
      int channels,
      bool affine = true)
      : scale(channels, 1.0), shift(channels, 0.0) {
    auto read = [&](const std::string& tensor) {
      auto array = reader.tensor(name + "." + tensor, {channels});
      const float* values = array.data<float>();
      return std::vector<double>(values, values + channels);
    };
    if (affine) {
      scale = read("weight");
      shift = read("bias");
    }
    auto mean = read("running_mean"), variance = read("running_var");
    for (int c = 0; c < channels; ++c) {
      scale[c] /= std::sqrt(variance[c] + kNormEps);
      shift[c] -= mean[c] * scale[c];
    }
  }
};

// A convolution with the norm behind it folded in. One over frequency and time
// becomes one over time, whose channels are those of all frequencies under the
// kernel, the lowest first.
// expected: [O, C, taps], or [O, C, bands, taps] → w: [O, taps, bands * C]
Convolution take_normed(
    const LayerReader& reader,
    const std::string& conv,
    const std::string& norm,
    const mx::Shape& expected,
    const ops::Conv1d& shape = {},
    bool affine = true) {
  BatchNorm folded(reader, norm, expected[0], affine);
  bool over_bands = expected.size() == 4;
  auto w = over_bands ? reader.tensor(conv + ".weight", expected)
                      : reader.kernel(conv, expected).matrix.w;
  scale_outputs(w, folded.scale);
  return {over_bands ? bands_as_channels(w) : w, as_array(folded.shift), shape};
}

// Of three bands and three frames.
Convolution take_square(
    const LayerReader& reader,
    const std::string& number,
    int outputs,
    int inputs) {
  return take_normed(
      reader,
      "conv" + number,
      "bn" + number,
      {outputs, inputs, kTaps, kTaps},
      {.pad_left = 1, .pad_right = 1});
}

NormRelu take_norm_relu(
    const LayerReader& reader,
    const std::string& name,
    int channels) {
  BatchNorm norm(reader, name, channels);
  return {as_array(norm.scale), as_array(norm.shift)};
}

int outputs_of(const LayerReader& reader, const std::string& layer) {
  return reader.size(layer + ".weight", 3, 0);
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

// The bands that a convolution of this stride is centred on.
mx::array centres(const mx::array& x, int stride, mx::Stream s) {
  return mx::slice(x, {0, 0, 0}, x.shape(), {stride, 1, 1}, s);
}

} // namespace

mx::array NormRelu::operator()(const mx::array& x, mx::Stream s) const {
  auto normed = mx::add(mx::multiply(x, scale, s), shift, s);
  return mx::maximum(normed, mx::array(0.0f), s);
}

SpeakerHead::SpeakerHead(const LayerReader& head)
    : width_(head.size("conv1.weight", 4, 0)),
      entry_(take_square(head, "1", width_, 1)),
      exit_(take_square(head, "2", width_, width_)) {
  for (std::string group : {"layer1", "layer2"}) {
    int count = head.count(group + ".");
    for (int i = 0; i < std::max(1, count); ++i) {
      auto block = head.child(group, i);
      blocks_.push_back(
          {i == 0 ? kStride : 1,
           take_square(block, "1", width_, width_),
           take_square(block, "2", width_, width_)});
      if (i == 0) {
        blocks_.back().shortcut = take_normed(
            block, "shortcut.0", "shortcut.1", {width_, width_, 1, 1});
      }
    }
  }
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
  x = entry_(with_neighbours(x, 1, s), {.activation = relu}, s);
  for (const auto& [stride, first, second, shortcut] : blocks_) {
    auto around = shortcut ? (*shortcut)(centres(x, stride, s), {}, s) : x;
    auto hidden = first(with_neighbours(x, stride, s), {.activation = relu}, s);
    auto sum = second(with_neighbours(hidden, 1, s), {.residual = around}, s);
    x = ops::activate(sum, relu, s);
  }
  x = exit_(with_neighbours(x, kStride, s), {.activation = relu}, s);
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

} // namespace

DenseBlock::DenseBlock(
    const LayerReader& xvector,
    const std::string& name,
    int channels,
    int dilation)
    : channels_(channels), dilation_(dilation) {
  std::string layer = name + ".tdnnd";
  int end = xvector.count(layer);
  for (int i = 1; i < std::max(2, end); ++i) {
    layers_.emplace_back(xvector.child(layer + std::to_string(i)), channels_);
    channels_ += layers_.back().local_w.filters();
  }
}

DenseBlock::Layer::Layer(const LayerReader& layer, int channels)
    : norm(take_norm_relu(layer, "nonlinear1.batchnorm", channels)),
      narrow(take_normed(
          layer,
          "linear1",
          "nonlinear2.batchnorm",
          {outputs_of(layer, "linear1"), channels, 1})),
      local_w(layer.kernel(
          "cam_layer.linear_local",
          {outputs_of(layer, "cam_layer.linear_local"),
           narrow.w.filters(),
           kTaps})),
      context(layer.pointwise(
          "cam_layer.linear1",
          outputs_of(layer, "cam_layer.linear1"),
          narrow.w.filters())),
      mask(layer.pointwise(
          "cam_layer.linear2",
          local_w.filters(),
          context.w.rows())) {}

mx::array DenseBlock::features(
    const Layer& layer,
    const mx::array& x,
    mx::Stream s) const {
  constexpr auto relu = ops::Activation::relu;
  auto narrow = layer.narrow(layer.norm(x, s), {.activation = relu}, s);
  auto local = ops::conv1d(
      narrow,
      layer.local_w,
      {{.dilation = dilation_, .pad_left = dilation_, .pad_right = dilation_}},
      s);
  auto context = layer.context(context_of(narrow, s), {.activation = relu}, s);
  auto masks = mx::sigmoid(layer.mask(context, {}, s), s);
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

} // namespace

SpeakerEncoder::SpeakerEncoder(const LayerReader& reader)
    : stream_(reader.format().stream),
      head_(reader.child("head")),
      entry_(take_normed(
          reader,
          "xvector.tdnn.linear",
          "xvector.tdnn.nonlinear.batchnorm",
          {outputs_of(reader, "xvector.tdnn.linear"),
           head_.channels(),
           kEntryTaps},
          {.stride = kEntryStride,
           .pad_left = kEntryTaps / 2,
           .pad_right = kEntryTaps / 2})),
      stages_(take_stages(reader.child("xvector"), entry_.w.filters())),
      norm_(take_norm_relu(
          reader,
          "xvector.out_nonlinear.batchnorm",
          stages_.back().w.filters())),
      dense_(take_normed(
          reader,
          "xvector.dense.linear",
          "xvector.dense.nonlinear.batchnorm",
          {outputs_of(reader, "xvector.dense.linear"),
           2 * stages_.back().w.filters(),
           1},
          {},
          false)) {}

std::vector<SpeakerEncoder::Stage> SpeakerEncoder::take_stages(
    const LayerReader& xvector,
    int channels) {
  std::vector<Stage> stages;
  for (int dilation : kDilations) {
    std::string number = std::to_string(stages.size() + 1);
    DenseBlock block(xvector, "block" + number, channels, dilation);
    auto transit = xvector.child("transit" + number);
    int inputs = block.channels();
    channels = outputs_of(transit, "linear");
    stages.push_back(
        {std::move(block),
         take_norm_relu(transit, "nonlinear.batchnorm", inputs),
         transit.kernel("linear", {channels, inputs, 1})});
  }
  return stages;
}

std::vector<float> SpeakerEncoder::embedding(const mx::array& samples) const {
  auto fbank = kaldi_fbank(samples, stream_);
  require(
      fbank.shape(0) >= kLeastFrames,
      "the recording is too short to tell its speaker: " +
          std::to_string(samples.shape(0)) + " samples");
  auto x = entry_(
      head_.run(fbank, stream_),
      {.activation = ops::Activation::relu},
      stream_);
  for (const auto& stage : stages_) {
    x = stage.norm(stage.block.run(x, stream_), stream_);
    x = ops::conv1d(x, stage.w, {}, stream_);
  }
  x = norm_(x, stream_);
  mx::eval(x);
  auto vector = dense_(statistics(x), {}, stream_);
  mx::eval(vector);
  return {vector.data<float>(), vector.data<float>() + vector.size()};
}

} // namespace nightingale
