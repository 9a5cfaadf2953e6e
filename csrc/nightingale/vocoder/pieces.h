#pragma once

#include <optional>
#include <string>

#include "nightingale/checkpoint/weights.h"
#include "nightingale/ops/convolution.h"

// Layers that take their rows piece by piece and give, as soon as they can, the
// same rows as for the whole at once. What a layer waits for is kept in a plain
// value beside it.

namespace nightingale {

// Rows, [1, n, C] with n above 0; nothing when none are ready.
using Piece = std::optional<mx::array>;

int piece_rows(const Piece& piece);
Piece join(const Piece& first, const Piece& second, mx::Stream s);

// Rows [begin, end); nothing where that is empty.
Piece cut(const mx::array& rows, int begin, int end, mx::Stream s);

// Rows that wait to be taken together with others.
class RowQueue {
 public:
  void push(const Piece& piece, mx::Stream s) {
    rows_ = join(rows_, piece, s);
  }
  int size() const {
    return piece_rows(rows_);
  }
  // The first `count` rows.
  Piece take(int count, mx::Stream s);
  const Piece& rows() const {
    return rows_;
  }

 private:
  Piece rows_;
};

// A convolution with its bias and its padding for the whole.
struct Conv {
  mx::array w, b;
  ops::Conv1d shape;

  static Conv take(
      Weights& weights,
      const std::string& name,
      const mx::Shape& expected, // [O, C, K]
      const ops::Conv1d& shape);
  // Padded so that as many rows come out as go in.
  static Conv take_same(
      Weights& weights,
      const std::string& name,
      const mx::Shape& expected,
      int dilation = 1);
};

struct ConvTail {
  Piece rows; // that coming results still need
  bool begun = false;
  int zeros = 0; // before them, once begun
};

// Feeds a piece, the last one or not. The epilogue's bias is the layer's; its
// residual is taken from `residual`, if one is given.
Piece feed(
    const Conv& conv,
    ConvTail& tail,
    const Piece& piece,
    bool last,
    ops::Epilogue epilogue,
    RowQueue* residual,
    mx::Stream s);

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
  Piece rows;
  bool begun = false; // the first of `rows` has been upsampled already
};

Piece feed(
    const Upsampling& upsampling,
    UpsamplingTail& tail,
    const Piece& piece,
    bool last,
    mx::Stream s);

} // namespace nightingale
