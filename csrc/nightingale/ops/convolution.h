#pragma once

#include "nightingale/ops/epilogue.h"

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

// x: [B, T, C]; w: [O, K, C / groups] → [B, T', O]. Types as in linear.
mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
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
