#include "nightingale/models/hift/resblock.h"

namespace nightingale {

ResBlock::ResBlock(
    Weights& weights,
    const std::string& name,
    int channels,
    int taps,
    const FilterFormat& format,
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
             format,
             s),
         alpha("activations2."),
         Conv::take_same(
             weights, name + "convs2." + number, kernel, 1, format, s)});
  }
}

Frames ResBlock::forward(
    ResBlockState& state,
    Frames x,
    bool last,
    mx::Stream s) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    auto& [dilated, plain] = state.layers[i];
    auto input = join(dilated.kept, x, s);
    int first = dilated.first_kept;
    auto hidden = nightingale::forward(
        layer.dilated,
        dilated,
        {input, last},
        {.snake = layer.dilated_alpha,
         .epilogue = {.snake = layer.plain_alpha}},
        s);
    // `input` starts before the frames that the sum needs.
    int begin = plain.results - first;
    x = nightingale::forward(
        layer.plain,
        plain,
        {join(plain.kept, hidden, s), last},
        {.residual = input, .residual_begin = begin},
        s);
  }
  return x;
}

} // namespace nightingale
