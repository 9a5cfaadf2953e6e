#include "nightingale/vocoder/pieces.h"

#include <algorithm>

#include "mlx/ops.h"

namespace nightingale {

int piece_rows(const Piece& piece) {
  return piece ? piece->shape(1) : 0;
}

Piece join(const Piece& first, const Piece& second, mx::Stream s) {
  if (!first || !second) {
    return first ? first : second;
  }
  return mx::concatenate({*first, *second}, 1, s);
}

Piece cut(const mx::array& rows, int begin, int end, mx::Stream s) {
  if (begin >= end) {
    return std::nullopt;
  }
  if (begin == 0 && end == rows.shape(1)) {
    return rows;
  }
  mx::Shape start(rows.ndim(), 0), stop = rows.shape();
  start[1] = begin;
  stop[1] = end;
  return mx::contiguous(mx::slice(rows, start, stop, s), false, s);
}

Piece RowQueue::take(int count, mx::Stream s) {
  if (count == 0) {
    return std::nullopt;
  }
  auto rows = *rows_;
  rows_ = cut(rows, count, rows.shape(1), s);
  return cut(rows, 0, count, s);
}

Conv Conv::take(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    const ops::Conv1d& shape) {
  return {
      weights.take_conv(name, expected, mx::float32),
      weights.take(name + ".bias", {expected[0]}, mx::float32),
      shape};
}

Conv Conv::take_same(
    Weights& weights,
    const std::string& name,
    const mx::Shape& expected,
    int dilation) {
  int pad = (expected[2] - 1) / 2 * dilation;
  ops::Conv1d shape{.dilation = dilation, .pad_left = pad, .pad_right = pad};
  return take(weights, name, expected, shape);
}

Piece feed(
    const Conv& conv,
    ConvTail& tail,
    const Piece& piece,
    bool last,
    ops::Epilogue epilogue,
    RowQueue* residual,
    mx::Stream s) {
  auto rows = join(tail.rows, piece, s);
  ops::Conv1d shape = conv.shape;
  shape.pad_left = tail.begun ? tail.zeros : conv.shape.pad_left;
  shape.pad_right = last ? conv.shape.pad_right : 0;
  int count = rows ? shape.output_rows(rows->shape(1), conv.w.shape(1)) : 0;
  if (count == 0) {
    tail.rows = rows;
    return std::nullopt;
  }
  epilogue.bias = conv.b;
  if (residual) {
    epilogue.residual = residual->take(count, s);
  }
  int next = count * shape.stride - shape.pad_left; // of the next result
  tail.begun = true;
  tail.zeros = std::max(0, -next);
  tail.rows =
      last ? std::nullopt : cut(*rows, std::max(0, next), rows->shape(1), s);
  return ops::conv1d(*rows, conv.w, shape, epilogue, s);
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

Piece feed(
    const Upsampling& up,
    UpsamplingTail& tail,
    const Piece& piece,
    bool last,
    mx::Stream s) {
  // Each result needs the rows before and after its own.
  auto rows = join(tail.rows, piece, s);
  int count = piece_rows(rows), taps = up.w.shape(1);
  int first = tail.begun ? 1 : 0, end = last ? count : count - 1;
  if (end <= first) {
    tail.rows = rows;
    return std::nullopt;
  }
  ops::ConvTranspose1d shape{
      .stride = up.stride,
      .trim_left = up.trim + first * up.stride,
      .trim_right = last ? up.trim : taps - up.trim};
  tail.begun = true;
  tail.rows = last ? std::nullopt : cut(*rows, end - 1, count, s);
  return ops::conv_transpose1d(*rows, up.w, up.b, shape, s);
}

} // namespace nightingale
