#include "nightingale/models/voice/voice_encoder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/models/voice/recording.h"

namespace nightingale {

namespace {

constexpr int kVoiceMels = 40;
constexpr int kPartFrames = 160;
constexpr int kPartStep = 77; // frames: 1.3 parts a second
// A last part counts where at least so much of it is there.
constexpr int kLeastFrames = kPartFrames * 4 / 5;

// Parts of a recording of `frames`: all that are whole, and the last one if
// enough of it is there, or if there is no other.
int part_count(int frames) {
  int reach = std::max(0, frames - kPartFrames + kPartStep);
  int count = reach / kPartStep;
  int rest = reach % kPartStep + kPartFrames - kPartStep;
  return count == 0 || rest >= kLeastFrames ? count + 1 : count;
}

// mel: [frames, mels] → [parts, 160, mels]; zeros where the recording has ended
mx::array parts_of(const mx::array& mel, mx::Stream s) {
  int frames = mel.shape(0), mels = mel.shape(1), count = part_count(frames);
  int covered = kPartFrames + kPartStep * (count - 1);
  auto padded = mx::pad(
      mel,
      {{0, std::max(0, covered - frames)}, {0, 0}},
      mx::array(0.0f),
      "constant",
      s);
  std::vector<mx::array> parts;
  for (int i = 0; i < count; ++i) {
    int begin = i * kPartStep;
    parts.push_back(
        mx::slice(padded, {begin, 0}, {begin + kPartFrames, mels}, s));
  }
  return mx::stack(parts, 0, s);
}

int layer_count(const TensorFile& file) {
  int count = 1;
  for (std::string name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}) {
    count = std::max(count, count_layers(file, "lstm." + name + "_l"));
  }
  return count;
}

// Of unit length; zeros where all are.
std::vector<double> normalised(std::vector<double> x) {
  double squares = 0;
  for (double value : x) {
    squares += value * value;
  }
  double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (double& value : x) {
    value *= scale;
  }
  return x;
}

} // namespace

VoiceEncoder::VoiceEncoder(Weights& weights, mx::Stream s)
    : stream_(s),
      proj_{
          weights.take("proj.weight", {-1, -1}, mx::float32),
          weights.take("proj.bias", {proj_.w.rows()}, mx::float32)} {
  int units = proj_.w.columns(), inputs = kVoiceMels;
  int layers = layer_count(weights.file());
  for (int i = 0; i < layers; ++i) {
    std::string layer = "_l" + std::to_string(i);
    auto take = [&](const std::string& name, const mx::Shape& shape) {
      return weights.take("lstm." + name + layer, shape, mx::float32);
    };
    auto bias =
        mx::add(take("bias_ih", {4 * units}), take("bias_hh", {4 * units}), s);
    mx::eval(bias);
    layers_.push_back(
        {take("weight_ih", {4 * units, inputs}),
         take("weight_hh", {4 * units, units}),
         bias});
    inputs = units;
  }
}

mx::array VoiceEncoder::embed_parts(const mx::array& mel) const {
  auto x = parts_of(mel, stream_);
  for (const auto& layer : layers_) {
    x = ops::lstm(x, layer, stream_);
  }
  int parts = x.shape(0), units = x.shape(2);
  auto last = mx::slice(
      x, {0, kPartFrames - 1, 0}, {parts, kPartFrames, units}, stream_);
  return proj_(
      mx::squeeze(last, 1, stream_),
      {.activation = ops::Activation::relu},
      stream_);
}

std::vector<float> VoiceEncoder::embedding(
    const std::vector<float>& samples) const {
  auto [begin, end] = loud_part(samples);
  mx::array heard(samples.begin() + begin, {static_cast<int>(end - begin)});
  auto parts = embed_parts(voice_mel(heard, stream_));
  mx::eval(parts);
  int size = parts.shape(1);
  std::vector<double> sum(size);
  for (int i = 0; i < parts.shape(0); ++i) {
    const float* part = parts.data<float>() + int64_t(i) * size;
    auto unit = normalised({part, part + size});
    std::ranges::transform(sum, unit, sum.begin(), std::plus<>());
  }
  auto mean = normalised(std::move(sum));
  if (std::ranges::all_of(mean, [](double x) { return x == 0; })) {
    throw std::invalid_argument(
        "the voice encoder hears no voice in the recording");
  }
  return {mean.begin(), mean.end()};
}

} // namespace nightingale
