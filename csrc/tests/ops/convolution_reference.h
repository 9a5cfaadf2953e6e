#pragma once

#include "arrays.h"
#include "nightingale/ops/convolution.h"

namespace nightingale::testing {

// ops::conv1d without an epilogue, in double precision.
inline Values conv1d_reference(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape) {
  int batch = x.shape(0), length = x.shape(1), channels = x.shape(2);
  int filters = w.shape(0), taps = w.shape(1), width = w.shape(2);
  int padded = length + shape.pad_left + shape.pad_right;
  int rows = (padded - (taps - 1) * shape.dilation - 1) / shape.stride + 1;
  Values in = values(x), kernel = values(w), y;
  for (int b = 0; b < batch; ++b) {
    for (int row = 0; row < rows; ++row) {
      for (int o = 0; o < filters; ++o) {
        int first = o / (filters / shape.groups) * width;
        double sum = 0.0;
        for (int tap = 0; tap < taps; ++tap) {
          int t = row * shape.stride + tap * shape.dilation - shape.pad_left;
          for (int c = 0; c < width && t >= 0 && t < length; ++c) {
            sum += in[(b * length + t) * channels + first + c] *
                kernel[(o * taps + tap) * width + c];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// Calls check(taps, shape) for every number of taps, stride and trim.
template <typename F>
void for_transposed_shapes(
    std::initializer_list<int> all_taps,
    std::initializer_list<int> strides,
    F check) {
  for (int taps : all_taps) {
    for (int stride : strides) {
      for (auto [left, right] : {std::pair{0, 0}, {2, 0}, {1, 2}, {4, 4}}) {
        CAPTURE(taps);
        CAPTURE(stride);
        CAPTURE(left);
        CAPTURE(right);
        ops::ConvTranspose1d shape{stride, left, right};
        check(taps, shape);
      }
    }
  }
}

} // namespace nightingale::testing
