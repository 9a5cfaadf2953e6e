#include "nightingale/models/voice/speaker_head.h"

#include <algorithm>

#include "mlx/ops.h"
#include "nightingale/io/tensor_sizes.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/convolution.h"

namespace nightingale {

namespace {

constexpr int kBands = 80; // of the input
constexpr int kTaps = 3; // over frequency and over time
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

} // namespace nightingale
