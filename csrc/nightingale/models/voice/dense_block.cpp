#include "nightingale/models/voice/dense_block.h"

#include <algorithm>

#include "mlx/ops.h"
#include "nightingale/io/tensor_sizes.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

namespace {

constexpr int kTaps = 3;
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

} // namespace nightingale
