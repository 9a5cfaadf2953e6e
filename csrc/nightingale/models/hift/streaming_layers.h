#pragma once

#include <optional>
#include <string>

#include "nightingale/io/weights.h"
#include "nightingale/ops/streaming_conv.h"

// Layers that take their rows piece by piece and give, as soon as they can, the
// same rows as for the whole at once. What a layer waits for is kept in a plain
// value beside it.

namespace nightingale {

// Rows, [1, n, C] with n above 0; nothing when none are ready.
using Frames = std::optional<mx::array>;

// What was kept and what is new, together.
using PendingFrames = std::optional<ops::FrameSpan>;

PendingFrames join(const Frames& kept, const Frames& fresh, mx::Stream s);
int count_rows(const PendingFrames& rows);
// To be kept until there is more.
Frames whole(const PendingFrames& rows, mx::Stream s);

// What filters are multiplied as: codes of `bits` if that is not 0; else floats
// or, where a GPU multiplies tiles of them, halves.
struct FilterForm {
  int bits = 0;
  bool halves = false;
};

// A convolution with its bias and its padding for the whole.
struct Conv {
  ops::Filters filters;
  mx::array b;
  ops::Conv1d shape;

  static Conv take(
      Weights& weights,
      const std::string& name,
      const mx::Shape& expected, // [O, C, K]
      const ops::Conv1d& shape,
      const FilterForm& form,
      mx::Stream s);
  // Padded so that as many rows come out as go in.
  static Conv take_same(
      Weights& weights,
      const std::string& name,
      const mx::Shape& expected,
      int dilation,
      const FilterForm& form,
      mx::Stream s);
};

struct ConvTail {
  Frames rows; // that coming results still need
  bool begun = false;
  int zeros = 0; // before them, once begun
  int first = 0; // the number of the first of them in the whole
  int results = 0; // so far
};

// Feeds a piece behind the tail's rows, the last one or not. `conv` says what
// is done besides: its shape, bias and what is kept are the layer's.
Frames feed(
    const Conv& layer,
    ConvTail& tail,
    const PendingFrames& rows,
    bool last,
    ops::StreamingConv conv,
    mx::Stream s);

inline Frames feed(
    const Conv& layer,
    ConvTail& tail,
    const Frames& piece,
    bool last,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  return feed(
      layer,
      tail,
      join(tail.rows, piece, s),
      last,
      ops::StreamingConv{.epilogue = epilogue},
      s);
}

// A transposed convolution that makes `stride` rows of each.
struct Upsampling {
  mx::array w, b;
  int stride;
  int trim; // rows dropped from either end of the whole

  static Upsampling take(
      Weights& weights,
      const std::string& name,
      const mx::Shape& expected, // [C, O, K]
      int stride);
};

struct UpsamplingTail {
  Frames rows;
  bool begun = false; // the first of `rows` has been upsampled already
};

Frames feed(
    const Upsampling& upsampling,
    UpsamplingTail& tail,
    const Frames& piece,
    bool last,
    mx::Stream s);

} // namespace nightingale
