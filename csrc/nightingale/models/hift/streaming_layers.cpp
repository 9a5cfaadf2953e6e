#include "nightingale/models/hift/streaming_layers.h"

#include <algorithm>

namespace nightingale {

PendingFrames join(const Frames& kept, const Frames& fresh, mx::Stream s) {
  if (!kept && !fresh) {
    return std::nullopt;
  }
  return ops::joined(kept, fresh, s);
}

int count_rows(const PendingFrames& rows) {
  return rows ? rows->count() : 0;
}

Frames whole(const PendingFrames& rows, mx::Stream s) {
  return rows ? Frames(ops::whole(*rows, s)) : std::nullopt;
}

Conv Conv::take(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    const ops::Conv1d& shape,
    const FilterForm& form,
    mx::Stream s) {
  return {
      ops::Filters::of(
          weights.take_frame_conv(name, expected, mx::float32, form.bits, s),
          s,
          form.halves),
      weights.take(name + ".bias", {expected[0]}, mx::float32),
      shape};
}

Conv Conv::take_same(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    int dilation,
    const FilterForm& form,
    mx::Stream s) {
  int pad = (expected[2] - 1) / 2 * dilation;
  ops::Conv1d shape{.dilation = dilation, .pad_left = pad, .pad_right = pad};
  return take(weights, name, expected, shape, form, s);
}

Frames feed(
    const Conv& layer,
    ConvTail& tail,
    const PendingFrames& rows,
    bool last,
    ops::StreamingConv conv,
    mx::Stream s) {
  conv.shape = layer.shape;
  conv.shape.pad_left = tail.begun ? tail.zeros : layer.shape.pad_left;
  conv.shape.pad_right = last ? layer.shape.pad_right : 0;
  int results = conv.shape.output_rows(count_rows(rows), layer.filters.w.taps);
  if (!rows || results == 0) {
    tail.rows = whole(rows, s);
    return std::nullopt;
  }
  conv.epilogue.bias = layer.b;
  conv.keep = !last;
  tail.begun = true;
  tail.zeros = std::max(0, conv.shape.pad_left - results * conv.shape.stride);
  tail.first += conv.first_kept(results);
  tail.results += results;
  auto output = ops::conv1d(*rows, layer.filters, conv, s);
  tail.rows = output.kept;
  return output.y;
}

Upsampling Upsampling::take(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    int stride) {
  return {
      weights.take_conv_transpose(name, expected, mx::float32),
      weights.take(name + ".bias", {expected[1]}, mx::float32),
      stride,
      (expected[2] - stride) / 2};
}

Frames feed(
    const Upsampling& up,
    UpsamplingTail& tail,
    const Frames& piece,
    bool last,
    mx::Stream s) {
  // Each result needs the rows before and after its own.
  auto rows = join(tail.rows, piece, s);
  int count = count_rows(rows), taps = up.w.shape(1);
  int first = tail.begun ? 1 : 0, end = last ? count : count - 1;
  if (end <= first) {
    tail.rows = whole(rows, s);
    return std::nullopt;
  }
  ops::ConvTranspose1d shape{
      .stride = up.stride,
      .trim_left = up.trim + first * up.stride,
      .trim_right = last ? up.trim : taps - up.trim};
  auto output =
      ops::conv_transpose1d(*rows, up.w, up.b, shape, last ? 0 : 2, s);
  tail.begun = true;
  tail.rows = output.kept;
  return output.y;
}

} // namespace nightingale
