#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/tile_conv.h"
#include "nightingale/backends/reference/ops.h"
#include "ops/arrays.h"
#include "ops/convolution_reference.h"
#include "ops/epilogue_reference.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

double tolerance(mx::Dtype result) {
  double rounding = result == mx::float32 ? 2e-6
      : result == mx::float16             ? 2e-3
                                          : 1.6e-2;
  return graph_tolerance(rounding);
}

mx::array as_float(const mx::array& x) {
  return mx::astype(x, mx::float32, cpu_stream());
}

void check_conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue = {}) {
  auto y = gpu::conv1d(x, w, {shape, epilogue}, kernel_stream());
  auto expected = reference::conv1d(
      as_float(x), as_float(w), {shape, epilogue}, cpu_stream());
  CHECK(y.shape() == expected.shape());
  CHECK(y.dtype() == epilogue.result_dtype(x));
  CHECK(relative_error(y, values(expected)) < tolerance(y.dtype()));
}

void check_conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const ops::ConvTranspose1d& shape) {
  auto bias = noise_array({w.shape(0)}, 3);
  auto y = gpu::conv_transpose1d(x, {w, bias}, shape, kernel_stream());
  auto expected = reference::conv_transpose1d(
      as_float(x), {as_float(w), bias}, shape, cpu_stream());
  CHECK(y.dtype() == mx::float32);
  CHECK(y.shape() == expected.shape());
  CHECK(relative_error(y, values(expected)) < tolerance(x.dtype()));
}

} // namespace

TEST_CASE("kernel unfold: every stride, dilation, width and padding") {
  for (auto [length, channels] :
       {std::pair{9, 1}, {13, 3}, {1, 8}, {30, 12}, {70, 20}}) {
    for (int taps : {1, 3, 4, 11}) {
      for (auto [stride, dilation] :
           {std::pair{1, 1}, {1, 3}, {1, 5}, {2, 1}, {15, 1}, {3, 2}}) {
        for (auto [left, right] : {std::pair{0, 0}, {3, 1}, {50, 50}}) {
          ops::Conv1d shape{stride, dilation, 1, left, right};
          if (shape.output_rows(length, taps) == 0) {
            continue;
          }
          CAPTURE(length);
          CAPTURE(taps);
          CAPTURE(stride);
          CAPTURE(dilation);
          CAPTURE(left);
          auto x = noise_array({2, length, channels}, 1);
          check_conv1d(x, noise_array({5, taps, channels}, 2), shape);
        }
      }
    }
  }
}

TEST_CASE("kernel unfold: a convolution of halves") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    for (int channels : {7, 8}) {
      auto x = noise_array({2, 20, channels}, 1, dtype);
      auto w = noise_array({8, 3, channels}, 2, dtype);
      ops::Epilogue epilogue{.bias = noise_array({8}, 3, dtype)};
      check_conv1d(x, w, {.pad_left = 2}, epilogue);
    }
  }
}

TEST_CASE("kernel unfold: a convolution with an epilogue") {
  auto x = noise_array({2, 30, 8}, 1);
  for (int taps : {1, 3}) {
    auto w = noise_array({8, taps, 8}, 2);
    ops::Conv1d shape{.pad_left = taps - 1};
    for (const auto& epilogue : epilogues({2, 30, 8})) {
      if (epilogue.activation == ops::Activation::none) {
        check_conv1d(x, w, shape, epilogue);
      }
    }
  }
}

TEST_CASE("kernel unfold: many windows are laid out in parts") {
  auto x = noise_array({2, 50, 8}, 1), w = noise_array({5, 7, 8}, 2);
  for (int stride : {1, 2}) {
    ops::StreamingConv conv{.shape = {.stride = stride, .pad_left = 6}};
    conv.epilogue.bias = noise_array({5}, 3);
    auto filters = gpu::make_filters(w, false, kernel_stream());
    ops::FrameSpan frames{std::nullopt, x};
    int results = conv.shape.output_rows(50, 7);
    int keep = 50 - conv.first_kept(results);
    auto output = [&](int rows) {
      return gpu::window_conv(
          {frames, filters, conv, keep}, rows * 448 * 2, kernel_stream());
    };
    auto whole = output(50);
    for (int rows : {1, 7, 49}) {
      CAPTURE(rows);
      auto parts = output(rows);
      CHECK(relative_error(parts.y, values(whole.y)) < 1e-6);
      CHECK(same_bits(*parts.kept, *whole.kept));
    }
  }
}

TEST_CASE("a convolution in groups, or of next to nothing, is MLX's") {
  long before = gpu::kernel_launches();
  auto x = noise_array({1, 9, 4}, 1);
  check_conv1d(x, noise_array({6, 3, 2}, 2), {.groups = 2, .pad_left = 1});
  check_conv1d(noise_array({1, 7, 1}, 1), noise_array({1, 3, 1}, 2), {});
  CHECK(gpu::kernel_launches() == before);
}

TEST_CASE("kernel overlap: every stride, kernel and trim") {
  for_transposed_shapes({1, 3, 7, 16}, {1, 2, 5, 8}, [](int taps, auto& shape) {
    for (int length : {1, 9, 40}) {
      if (shape.output_rows(length, taps) > 0) {
        CAPTURE(length);
        auto x = noise_array({2, length, 6}, 1);
        check_conv_transpose1d(x, noise_array({7, taps, 6}, 2), shape);
      }
    }
  });
}

TEST_CASE("kernel overlap: of halves and of few filters") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    check_conv_transpose1d(
        noise_array({1, 9, 8}, 1, dtype),
        noise_array({9, 5, 8}, 2, dtype),
        {2, 1, 1});
  }
  check_conv_transpose1d(
      noise_array({1, 9, 8}, 1), noise_array({1, 5, 8}, 2), {2, 1, 1});
}
