#include "nightingale/ops/convolution.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "convolution_reference.h"
#include "epilogue_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

Values conv_transpose_reference(
    const mx::array& x,
    const ops::TransposedFilters& weights,
    const ops::ConvTranspose1d& shape) {
  const auto& [w, bias] = weights;
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
  ops::TransposedFilters filters{w, noise_array({w.shape(0)}, 3)};
  Values expected = conv_transpose_reference(x, filters, shape);
  mx::Shape rows{
      x.shape(0), shape.output_rows(x.shape(1), w.shape(1)), w.shape(0)};
  auto y = cpu::conv_transpose1d(x, filters, shape, cpu_stream());
  CHECK(y.shape() == rows);
  CHECK(relative_error(y, expected) < 2e-6);
  y = reference::conv_transpose1d(x, filters, shape, graph_stream());
  CHECK(y.shape() == rows);
  CHECK(relative_error(y, expected) < graph_tolerance(2e-6));
}

} // namespace

TEST_CASE("conv1d of every stride, dilation, grouping and padding") {
  for (int length : {9, 70}) {
    for (int taps : {1, 3, 4}) {
      for (int groups : {1, 2, 6}) {
        for (int stride : {1, 2, 3}) {
          for (int dilation : {1, 2}) {
            for (auto [left, right] : {std::pair(0, 0), std::pair(3, 1)}) {
              CAPTURE(length);
              CAPTURE(taps);
              CAPTURE(groups);
              CAPTURE(stride);
              CAPTURE(dilation);
              CAPTURE(left);
              auto x = noise_array({2, length, 12}, 1);
              auto w = noise_array({18, taps, 12 / groups}, 2);
              ops::Conv1d shape{stride, dilation, groups, left, right};
              Values expected = conv1d_reference(x, w, shape);
              auto y = cpu::conv1d(x, w, {shape}, cpu_stream());
              CHECK(relative_error(y, expected) < 1e-6);
              y = reference::conv1d(x, w, {shape}, graph_stream());
              CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("conv1d of one filter per channel") {
  for (int channels : {5, 16, 70}) {
    for (int taps : {1, 7, 31}) {
      for (int stride : {1, 2}) {
        for (int dilation : {1, 3}) {
          CAPTURE(channels);
          CAPTURE(taps);
          auto x = noise_array({2, 40, channels}, 1);
          auto w = noise_array({channels, taps, 1}, 2);
          int pad = taps / 2 * dilation;
          ops::Conv1d shape{stride, dilation, channels, pad, pad + 60};
          auto y = cpu::conv1d(x, w, {shape}, cpu_stream());
          CHECK(relative_error(y, conv1d_reference(x, w, shape)) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("conv1d with every epilogue") {
  for (int groups : {1, 2, 20}) {
    for (int length : {8, 100}) {
      CAPTURE(groups);
      CAPTURE(length);
      auto x = noise_array({2, length, 20}, 1);
      auto w = noise_array({20, 5, 20 / groups}, 2);
      ops::Conv1d shape{.dilation = 3, .groups = groups, .pad_left = 12};
      Values sums = conv1d_reference(x, w, shape);
      int index = 0;
      for (const auto& epilogue : epilogues({2, length, 20})) {
        CAPTURE(index++);
        Values expected = apply_epilogue_reference(sums, 20, epilogue);
        auto y = cpu::conv1d(x, w, {shape, epilogue}, cpu_stream());
        CHECK(relative_error(y, expected) < 2e-6);
        y = reference::conv1d(x, w, {shape, epilogue}, graph_stream());
        CHECK(relative_error(y, expected) < graph_tolerance(2e-6));
      }
    }
  }
}

TEST_CASE("conv1d of half inputs gives their type, or the residual's") {
  for (int groups : {1, 12}) {
    auto x = noise_array({1, 30, 12}, 1, mx::bfloat16);
    auto w = noise_array({12, 3, 12 / groups}, 2, mx::bfloat16);
    ops::Conv1d shape{.groups = groups, .pad_left = 2};
    Values expected = conv1d_reference(x, w, shape);
    auto y = cpu::conv1d(x, w, {shape}, cpu_stream());
    CHECK(y.dtype() == mx::bfloat16);
    CHECK(relative_error(y, expected) < 4e-3);
    ops::Epilogue epilogue{.residual = noise_array({1, 30, 12}, 3)};
    y = cpu::conv1d(x, w, {shape, epilogue}, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(
        relative_error(y, apply_epilogue_reference(expected, 12, epilogue)) <
        2e-6);
  }
}

TEST_CASE("conv1d of half weights is computed in float32 on the CPU") {
  auto x = noise_array({1, 20, 7}, 1);
  for (mx::Dtype dtype : kFloatTypes) {
    auto w = noise_array({5, 3, 7}, 2, dtype);
    ops::Conv1d shape{.pad_left = 2};
    auto y = cpu::conv1d(x, w, {shape}, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(relative_error(y, conv1d_reference(x, w, shape)) < 1e-6);
  }
}

TEST_CASE("conv1d of an input shorter than its kernel has no rows") {
  auto x = noise_array({1, 2, 4}, 1), w = noise_array({3, 5, 4}, 2);
  auto y = cpu::conv1d(x, w, {}, cpu_stream());
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{1, 0, 3});
}

TEST_CASE("conv1d of every layout of its inputs") {
  auto x = noise_array({2, 11, 6}, 1), w = noise_array({4, 3, 3}, 2);
  ops::Conv1d shape{.groups = 2, .pad_left = 1, .pad_right = 1};
  for (auto [backend, conv1d, s] :
       backend_ops(cpu::conv1d, reference::conv1d)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return conv1d(v, w, {shape}, s); });
    check_views(w, [&](auto& v) { return conv1d(x, v, {shape}, s); });
  }
}

TEST_CASE("conv_transpose1d of every stride, kernel and trim") {
  for_transposed_shapes({1, 3, 7}, {1, 2, 5}, [](int taps, auto& shape) {
    for (int length : {1, 9, 70, 131}) {
      if (shape.output_rows(length, taps) > 0) {
        CAPTURE(length);
        auto x = noise_array({2, length, 12}, 1);
        check_conv_transpose(x, noise_array({7, taps, 12}, 2), shape);
      }
    }
  });
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
  ops::TransposedFilters filters{w, noise_array({50}, 3)};
  ops::ConvTranspose1d shape{3, 2, 2};
  auto whole = cpu::conv_transpose1d(x, filters, shape, s);
  // Rows [6, ...) of the part are rows [6 + 3 * begin, ...) of the whole.
  for (int begin : {1, 13, 100}) {
    CAPTURE(begin);
    auto part =
        cpu::conv_transpose1d(rows_of(x, begin, 150), filters, shape, s);
    CHECK(same_bits(
        rows_of(part, 6, part.shape(1)),
        rows_of(whole, 6 + 3 * begin, whole.shape(1))));
  }
}

TEST_CASE("conv_transpose1d of halves is computed in float32 on the CPU") {
  for (mx::Dtype dtype : kFloatTypes) {
    auto x = noise_array({1, 20, 7}, 1, dtype);
    ops::TransposedFilters filters{
        noise_array({5, 4, 7}, 2, dtype), noise_array({5}, 3)};
    ops::ConvTranspose1d shape{2, 1, 1};
    auto y = cpu::conv_transpose1d(x, filters, shape, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(
        relative_error(y, conv_transpose_reference(x, filters, shape)) < 1e-6);
  }
}

TEST_CASE("conv_transpose1d of every layout of its inputs") {
  auto x = noise_array({2, 11, 6}, 1), w = noise_array({4, 3, 6}, 2);
  auto bias = noise_array({4}, 3);
  ops::ConvTranspose1d shape{2, 1, 0};
  for (auto [backend, convolve, s] :
       backend_ops(cpu::conv_transpose1d, reference::conv_transpose1d)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return convolve(v, {w, bias}, shape, s); });
    check_views(w, [&](auto& v) { return convolve(x, {v, bias}, shape, s); });
    check_views(bias, [&](auto& v) { return convolve(x, {w, v}, shape, s); });
  }
}
