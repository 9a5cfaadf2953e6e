#include "nightingale/vocoder/resblock.h"

#include "nightingale/ops/activation.h"

namespace nightingale {

ResBlock::ResBlock(
    Weights& weights,
    const std::string& name,
    int channels,
    int taps) {
  mx::Shape kernel{channels, channels, taps};
  for (size_t i = 0; i < kDilations.size(); ++i) {
    std::string number = std::to_string(i);
    auto alpha = [&](const std::string& activations) {
      return weights.take(
          name + activations + number + ".alpha", {channels}, mx::float32);
    };
    layers_.push_back(
        {alpha("activations1."),
         Conv::take_same(
             weights, name + "convs1." + number, kernel, kDilations[i]),
         alpha("activations2."),
         Conv::take_same(weights, name + "convs2." + number, kernel)});
  }
}

Piece ResBlock::feed(ResBlockState& state, Piece x, bool last, mx::Stream s)
    const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    auto& kept = state.layers[i];
    kept.residual.push(x, s);
    if (x) {
      x = ops::snake(*x, layer.wide_alpha, s);
    }
    auto hidden = nightingale::feed(
        layer.wide,
        kept.wide,
        x,
        last,
        {.snake = layer.narrow_alpha},
        nullptr,
        s);
    x = nightingale::feed(
        layer.narrow, kept.narrow, hidden, last, {}, &kept.residual, s);
  }
  return x;
}

} // namespace nightingale
