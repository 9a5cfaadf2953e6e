#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

struct Conv1d {
  int stride = 1;
  int dilation = 1;
  int groups = 1;
  int pad_left = 0; // zeros before the first row, and after the last
  int pad_right = 0;

  // Rows that come out of `rows` under a kernel of `taps`.
  int output_rows(int rows, int taps) const {
    int padded = rows + pad_left + pad_right;
    int reach = (taps - 1) * dilation + 1;
    return padded < reach ? 0 : (padded - reach) / stride + 1;
  }
};

// What a convolution filters with: floats, or on the CPU codes.
struct Kernel {
  Matrix matrix; // floats: [O, K, C]; codes: [O, K * C]
  int taps; // K

  Kernel(mx::array w) : matrix(std::move(w)), taps(matrix.w.shape(1)) {}

  // w: [O, K, C] in codes of `bits`; C in whole groups
  static Kernel quantized(const mx::array& w, int bits, mx::Stream s);

  // Of the input channels [begin, begin + count) alone, in memory of its own.
  Kernel channels_of(int begin, int count) const;

  // The matrix of a kernel of one tap: [O, C]
  Matrix one_tap() const;

  int filters() const {
    return matrix.rows();
  }
  bool is_quantized() const {
    return matrix.is_quantized();
  }
  int channels() const {
    return is_quantized() ? matrix.columns() / taps : matrix.w.shape(2);
  }

 private:
  Kernel(Matrix quantized, int taps)
      : matrix(std::move(quantized)), taps(taps) {}
};

// x: [B, T, C]; w: [O, K, C / groups] → [B, T', O]. Types as in linear; codes
// have one group.
mx::array conv1d(
    const mx::array& x,
    const Kernel& w,
    const Conv1d& shape,
    const Epilogue& epilogue,
    mx::Stream s);

struct ConvTranspose1d {
  int stride = 1;
  int trim_left = 0; // rows dropped from either end of the whole result
  int trim_right = 0;

  int output_rows(int rows, int taps) const {
    return (rows - 1) * stride + taps - trim_left - trim_right;
  }
};

// Every input row adds its product with tap k to row (stride * t + k) of the
// result. x: [B, T, C]; w: [O, K, C]; bias: [O] → [B, T', O], float32
mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ConvTranspose1d& shape,
    mx::Stream s);

} // namespace nightingale::ops
