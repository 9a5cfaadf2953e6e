#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

struct Conv1d {
  int stride = 1;
  int dilation = 1;
  int groups = 1;
  int pad_left = 0; // zeros before the first row
  int pad_right = 0; // zeros after the last row

  // Number of output rows for `rows` input rows and a kernel of `taps`.
  int output_rows(int rows, int taps) const {
    int padded = rows + pad_left + pad_right;
    int reach = (taps - 1) * dilation + 1;
    return padded < reach ? 0 : (padded - reach) / stride + 1;
  }
};

// The weights of a convolution: floats, or on the CPU quantized weights.
struct Kernel {
  Matrix matrix; // floats: [O, K, C]; quantized: [O, K * C]
  int taps; // K

  Kernel(mx::array w) : matrix(std::move(w)), taps(matrix.w.shape(1)) {}

  // w: [O, K, C], to be quantized to `bits`; C is a multiple of the group size
  static Kernel quantized(const mx::array& w, int bits, mx::Stream s);

  // The weights of input channels [begin, begin + count), copied.
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

struct ConvOptions {
  Conv1d shape = {};
  Epilogue epilogue = {};
};

// x: [B, T, C]; w: [O, K, C / groups] → [B, T', O]. Types as in linear;
// quantized weights need groups = 1.
mx::array conv1d(
    const mx::array& x,
    const Kernel& w,
    const ConvOptions& options,
    mx::Stream s);

struct TransposedFilters {
  mx::array w; // [O, K, C]
  mx::array bias; // [O]
};

struct ConvTranspose1d {
  int stride = 1;
  int trim_left = 0; // rows dropped from the start of the full result
  int trim_right = 0; // and from its end

  int output_rows(int rows, int taps) const {
    return (rows - 1) * stride + taps - trim_left - trim_right;
  }
};

// Input row t adds its product with tap k to output row (stride * t + k).
// x: [B, T, C] → [B, T', O], float32
mx::array conv_transpose1d(
    const mx::array& x,
    const TransposedFilters& filters,
    const ConvTranspose1d& shape,
    mx::Stream s);

} // namespace nightingale::ops
