#include "nightingale/models/hift/pitch.h"

#include "mlx/ops.h"
#include "nightingale/family.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

namespace {

constexpr int kTaps = 3;

const std::string kPredictor = "mel2wav.f0_predictor.";

int width_of(const Weights& weights) {
  return weights.shape(kPredictor + "condnet.0.bias")[0];
}

} // namespace

PitchPredictor::PitchPredictor(Weights& weights, mx::Stream s)
    : w_(weights.take(
          kPredictor + "classifier.weight",
          {1, width_of(weights)},
          mx::float32)),
      b_(weights.take(kPredictor + "classifier.bias", {1}, mx::float32)) {
  int width = width_of(weights), inputs = kMels;
  for (int i = 0; i < kPitchLayers; ++i) {
    // The activations between them count as layers in the names.
    std::string name = kPredictor + "condnet." + std::to_string(2 * i);
    layers_.push_back(
        Conv::take_same(weights, name, {width, inputs, kTaps}, 1, {}, s));
    inputs = width;
  }
}

Frames PitchPredictor::forward(
    PitchState& state,
    Frames x,
    bool last,
    mx::Stream s) const {
  for (int i = 0; i < kPitchLayers; ++i) {
    auto& layer = state.layers[i];
    x = nightingale::forward(
        layers_[i],
        layer,
        {join(layer.kept, x, s), last},
        {.epilogue = {.activation = ops::Activation::elu}},
        s);
  }
  if (x) {
    x = mx::abs(ops::linear(*x, w_, {.bias = b_}, s), s);
  }
  return x;
}

} // namespace nightingale
