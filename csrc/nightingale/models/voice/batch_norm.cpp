#include "nightingale/models/voice/batch_norm.h"

#include <cmath>
#include <utility>

#include "mlx/ops.h"

namespace nightingale {

namespace {

constexpr double kEps = 1e-5;

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
  int outputs = w.shape(0), channels = w.shape(1);
  int bands = w.shape(2), taps = w.shape(3);
  std::vector<float> ordered;
  ordered.reserve(w.size());
  for (int o = 0; o < outputs; ++o) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int band = 0; band < bands; ++band) {
        for (int c = 0; c < channels; ++c) {
          int64_t row = (int64_t(o) * channels + c) * bands + band;
          ordered.push_back(w.data<float>()[row * taps + tap]);
        }
      }
    }
  }
  return mx::array(ordered.begin(), {outputs, taps, bands * channels});
}

} // namespace

BatchNorm BatchNorm::take(
    Weights& weights,
    const std::string& name,
    int channels,
    bool affine) {
  auto read = [&](const std::string& tensor) {
    auto array = weights.take(name + "." + tensor, {channels}, mx::float32);
    const float* values = array.data<float>();
    return std::vector<double>(values, values + channels);
  };
  BatchNorm norm{
      affine ? read("weight") : std::vector<double>(channels, 1.0),
      affine ? read("bias") : std::vector<double>(channels, 0.0)};
  auto mean = read("running_mean"), variance = read("running_var");
  for (int c = 0; c < channels; ++c) {
    norm.scale[c] /= std::sqrt(variance[c] + kEps);
    norm.shift[c] -= mean[c] * norm.scale[c];
  }
  return norm;
}

NormedConv NormedConv::take(
    Weights& weights,
    const std::string& conv,
    const mx::Shape& expected,
    const BatchNorm& norm) {
  auto w = weights.take_conv(conv, expected, mx::float32);
  scale_outputs(w, norm.scale);
  return {w, as_array(norm.shift)};
}

NormedConv NormedConv::take_2d(
    Weights& weights,
    const std::string& conv,
    const mx::Shape& expected,
    const BatchNorm& norm) {
  auto w = weights.take(conv + ".weight", expected, mx::float32);
  scale_outputs(w, norm.scale);
  return {bands_as_channels(w), as_array(norm.shift)};
}

NormRelu::NormRelu(mx::array scale, mx::array shift)
    : scale_(std::move(scale)), shift_(std::move(shift)) {}

NormRelu
NormRelu::take(Weights& weights, const std::string& name, int channels) {
  auto norm = BatchNorm::take(weights, name, channels);
  return {as_array(norm.scale), as_array(norm.shift)};
}

mx::array NormRelu::operator()(const mx::array& x, mx::Stream s) const {
  auto normed = mx::add(mx::multiply(x, scale_, s), shift_, s);
  return mx::maximum(normed, mx::array(0.0f), s);
}

} // namespace nightingale
