#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/convolution.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

Values conv_transpose_reference(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape) {
  int batch = x.shape(0), length = x.shape(1), channels = x.shape(2);
  int filters = w.shape(0), taps = w.shape(1);
  int rows = shape.output_rows(length, taps);
  Values in = values(x), kernel = values(w), added = values(bias);
  Values y(size_t(batch) * rows * filters);
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = added[i % filters];
  }
  for (int b = 0; b < batch; ++b) {
    for (int t = 0; t < length; ++t) {
      for (int tap = 0; tap < taps; ++tap) {
        int row = shape.stride * t + tap - shape.trim_left;
        for (int o = 0; o < filters && row >= 0 && row < rows; ++o) {
          for (int c = 0; c < channels; ++c) {
            y[(size_t(b) * rows + row) * filters + o] +=
                in[(b * length + t) * channels + c] *
                kernel[(o * taps + tap) * channels + c];
          }
        }
      }
    }
  }
  return y;
}

void check_conv_transpose(
    const mx::array& x,
    const mx::array& w,
    const ops::ConvTranspose1d& shape) {
  auto bias = noise_array({w.shape(0)}, 3);
  Values expected = conv_transpose_reference(x, w, bias, shape);
  mx::Shape rows{
      x.shape(0), shape.output_rows(x.shape(1), w.shape(1)), w.shape(0)};
  auto y = cpu::conv_transpose1d(x, w, bias, shape, cpu_stream());
  CHECK(y.shape() == rows);
  CHECK(relative_error(y, expected) < 2e-6);
  y = reference::conv_transpose1d(x, w, bias, shape, graph_stream());
  CHECK(y.shape() == rows);
  CHECK(relative_error(y, expected) < graph_tolerance(2e-6));
}

} // namespace

TEST_CASE("conv_transpose1d of every stride, kernel and trim") {
  for (int length : {1, 9, 70, 131}) {
    for (int taps : {1, 3, 7}) {
      for (int stride : {1, 2, 5}) {
        for (auto [left, right] :
             {std::pair(0, 0), std::pair(2, 0), std::pair(1, 2)}) {
          ops::ConvTranspose1d shape{stride, left, right};
          if (shape.output_rows(length, taps) <= 0) {
            continue;
          }
          CAPTURE(length);
          CAPTURE(taps);
          CAPTURE(stride);
          CAPTURE(left);
          CAPTURE(right);
          auto x = noise_array({2, length, 12}, 1);
          check_conv_transpose(x, noise_array({7, taps, 12}, 2), shape);
        }
      }
    }
  }
}

TEST_CASE("conv_transpose1d as the vocoder stretches its frames") {
  auto check = [](int channels, int filters, int taps, int stride) {
    CAPTURE(stride);
    int trim = (taps - stride) / 2;
    check_conv_transpose(
        noise_array({1, 5, channels}, 1),
        noise_array({filters, taps, channels}, 2),
        {stride, trim, trim});
  };
  check(512, 256, 16, 8);
  check(256, 128, 11, 5);
  check(128, 64, 7, 3);
}

TEST_CASE("a row of conv_transpose1d does not depend on rows far from it") {
  auto s = cpu_stream();
  auto x = noise_array({1, 150, 40}, 1), w = noise_array({50, 7, 40}, 2);
  auto bias = noise_array({50}, 3);
  ops::ConvTranspose1d shape{3, 2, 2};
  auto whole = cpu::conv_transpose1d(x, w, bias, shape, s);
  // Rows [6, ...) of the part are rows [6 + 3 * begin, ...) of the whole.
  for (int begin : {1, 13, 100}) {
    CAPTURE(begin);
    auto part =
        cpu::conv_transpose1d(rows_of(x, begin, 150), w, bias, shape, s);
    CHECK(same_bits(
        rows_of(part, 6, part.shape(1)),
        rows_of(whole, 6 + 3 * begin, whole.shape(1))));
  }
}

TEST_CASE("conv_transpose1d of halves is computed in float32 on the CPU") {
  auto bias = noise_array({5}, 3);
  for (mx::Dtype dtype : kFloatTypes) {
    auto x = noise_array({1, 20, 7}, 1, dtype);
    auto w = noise_array({5, 4, 7}, 2, dtype);
    ops::ConvTranspose1d shape{2, 1, 1};
    auto y = cpu::conv_transpose1d(x, w, bias, shape, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(
        relative_error(y, conv_transpose_reference(x, w, bias, shape)) < 1e-6);
  }
}

TEST_CASE("conv_transpose1d of every layout of its inputs") {
  auto x = noise_array({2, 11, 6}, 1), w = noise_array({4, 3, 6}, 2);
  auto bias = noise_array({4}, 3);
  ops::ConvTranspose1d shape{2, 1, 0};
  for (auto [form, convolve, s] :
       forms(cpu::conv_transpose1d, reference::conv_transpose1d)) {
    CAPTURE(form);
    check_views(x, [&](auto& v) { return convolve(v, w, bias, shape, s); });
    check_views(w, [&](auto& v) { return convolve(x, v, bias, shape, s); });
    check_views(bias, [&](auto& v) { return convolve(x, w, v, shape, s); });
  }
}
