#include "nightingale/models/hift/resblock.h"

namespace nightingale {

ResBlock::ResBlock(
    Weights& weights,
    const std::string& name,
    int channels,
    int taps,
    const FilterForm& form,
    mx::Stream s) {
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
             weights,
             name + "convs1." + number,
             kernel,
             kDilations[i],
             form,
             s),
         alpha("activations2."),
         Conv::take_same(
             weights, name + "convs2." + number, kernel, 1, form, s)});
  }
}

Frames ResBlock::feed(ResBlockState& state, Frames x, bool last, mx::Stream s)
    const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    auto& kept = state.layers[i];
    auto rows = join(kept.wide.rows, x, s);
    int first = kept.wide.first;
    auto hidden = nightingale::feed(
        layer.wide,
        kept.wide,
        rows,
        last,
        {.snake = layer.wide_alpha, .epilogue = {.snake = layer.narrow_alpha}},
        s);
    // The wide layer reaches further back than the sum does.
    x = nightingale::feed(
        layer.narrow,
        kept.narrow,
        join(kept.narrow.rows, hidden, s),
        last,
        {.residual = rows, .residual_begin = kept.narrow.results - first},
        s);
  }
  return x;
}

} // namespace nightingale
