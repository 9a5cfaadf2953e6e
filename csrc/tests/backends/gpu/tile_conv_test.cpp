#include "nightingale/backends/gpu/tile_conv.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"
#include "ops/arrays.h"
#include "ops/frame_spans.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr double kTolerance = 5e-5; // tensor cores cut sums off

mx::array rounded(const mx::array& x) {
  auto half = mx::astype(x, mx::float16, cpu_stream());
  return mx::astype(half, mx::float32, cpu_stream());
}

// Of about unit size after a convolution.
ops::Filters filters_of(int filters, int taps, int channels) {
  auto w = mx::multiply(
      noise_array({filters, taps, channels}, 2),
      mx::array(1.0f / std::sqrt(float(taps * channels))),
      cpu_stream());
  auto made = gpu::make_filters(ops::computed(w), false, cpu_stream());
  auto rows = mx::reshape(w, {filters, taps * channels}, cpu_stream());
  made.halves = ops::computed(mx::astype(rows, mx::float16, cpu_stream()));
  return made;
}

ops::StreamingConv conv_of(int filters, const ops::Conv1d& shape) {
  return {.shape = shape, .epilogue = {.bias = noise_array({filters}, 3)}};
}

// What is made of x, in two parts, and kept of it.
void check_conv(
    const mx::array& x,
    int split,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    int keep) {
  auto output = gpu::tile_conv(
      {split_at(x, split), filters, conv, keep}, kernel_stream());
  int results = conv.shape.output_rows(x.shape(1), filters.w.taps);
  ops::Epilogue epilogue = conv.epilogue;
  if (conv.residual) {
    auto residual = ops::to_array(*conv.residual, cpu_stream());
    int begin = conv.residual_begin;
    epilogue.residual = rows_of(residual, begin, begin + results);
  }
  auto expected = reference::conv1d(
      rounded(x),
      rounded(filters.w.matrix.w),
      {conv.shape, epilogue},
      cpu_stream());
  CHECK(output.y.shape() == expected.shape());
  CHECK(relative_error(output.y, values(expected)) < kTolerance);
  check_kept(output.kept, x, x.shape(1) - keep);
}

} // namespace

TEST_CASE("kernel tile_conv: taps, dilations, ends and any number of rows") {
  for (auto [taps, dilation] :
       {std::pair{1, 1}, {3, 1}, {3, 5}, {7, 3}, {11, 1}, {11, 5}}) {
    int pad = (taps - 1) / 2 * dilation;
    auto filters = filters_of(32, taps, 32);
    for (int rows : {1, 16, 33, 70}) {
      for (auto [left, right] : {std::pair{pad, pad}, {pad, 0}, {0, pad}}) {
        CAPTURE(taps);
        CAPTURE(dilation);
        CAPTURE(rows);
        CAPTURE(left);
        ops::Conv1d shape{1, dilation, 1, left, right};
        if (shape.output_rows(rows, taps) > 0) {
          auto x = noise_array({1, rows, 32}, 1);
          check_conv(x, 0, filters, conv_of(32, shape), 0);
        }
      }
    }
  }
}

TEST_CASE("kernel tile_conv: the widths that blocks have") {
  ops::Conv1d shape{1, 1, 1, 1, 1};
  for (auto [filters, channels] :
       {std::pair{32, 64}, {64, 32}, {96, 96}, {128, 64}, {256, 32}}) {
    CAPTURE(filters);
    CAPTURE(channels);
    check_conv(
        noise_array({1, 150, channels}, 1),
        0,
        filters_of(filters, 3, channels),
        conv_of(filters, shape),
        0);
  }
}

TEST_CASE("kernel tile_conv: rows in two parts, and what is kept") {
  auto x = noise_array({1, 40, 32}, 1);
  auto filters = filters_of(64, 7, 32);
  for (int split : {0, 1, 16, 39}) {
    for (int keep : {0, 1, 6, 30, 40}) {
      CAPTURE(split);
      CAPTURE(keep);
      check_conv(x, split, filters, conv_of(64, {1, 1, 1, 3, 0}), keep);
    }
  }
}

TEST_CASE("kernel tile_conv: Snake, and a residual in two parts") {
  auto x = noise_array({1, 40, 32}, 1);
  auto filters = filters_of(32, 3, 32);
  auto residual = noise_array({1, 60, 32}, 6);
  auto conv = conv_of(32, {1, 1, 1, 1, 1});
  conv.epilogue.snake = alpha_of(32);
  check_conv(x, 0, filters, conv, 0);
  for (int split : {0, 1, 30, 59}) {
    for (int begin : {0, 1, 20}) {
      CAPTURE(split);
      CAPTURE(begin);
      conv.residual = split_at(residual, split);
      conv.residual_begin = begin;
      check_conv(x, 5, filters, conv, 2);
      conv.epilogue.snake = std::nullopt;
    }
  }
}

TEST_CASE("kernel tile_conv: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  auto x = noise_array({1, 150, 32}, 1);
  auto filters = filters_of(128, 3, 32);
  auto conv = conv_of(128, {1, 1, 1, 1, 1});
  auto run = [&] {
    auto y =
        gpu::tile_conv({split_at(x, 0), filters, conv, 0}, kernel_stream()).y;
    mx::eval(y);
    return y;
  };
  auto expected = run();
  for (int most : {128, 32}) {
    KernelLimits limits({.threads = most});
    CHECK(same_bits(run(), expected));
  }
}

TEST_CASE("a convolution of halves takes two launches with Snake before it") {
  EmulatedGpu gpu;
  KernelLimits limits({.tiles = true});
  auto s = kernel_stream();
  if (!gpu::has_tiles(s)) {
    return; // a Mac
  }
  auto x = noise_array({1, 50, 32}, 1);
  auto filters = filters_of(32, 3, 32);
  auto conv = conv_of(32, {1, 1, 1, 1, 0});
  for (bool snaked : {false, true}) {
    CAPTURE(snaked);
    conv.snake = snaked ? std::optional(alpha_of(32)) : std::nullopt;
    long before = gpu::kernel_launches();
    auto output = gpu::streaming_conv1d(split_at(x, 9), filters, conv, s);
    mx::eval(output.y);
    CHECK(gpu::kernel_launches() - before == (snaked ? 2 : 1));
    auto read = snaked ? reference::snake(x, *conv.snake, cpu_stream()) : x;
    auto expected = reference::conv1d(
        read, filters.w.matrix.w, {conv.shape, conv.epilogue}, cpu_stream());
    CHECK(relative_error(output.y, values(expected)) < 1e-3);
    check_kept(output.kept, x, conv.first_kept(49));
  }
}

TEST_CASE("tile_conv leaves what it does not take to others") {
  auto x = noise_array({1, 40, 32}, 1);
  auto filters = filters_of(32, 3, 32);
  auto conv = conv_of(32, {});
  auto fits = [&](const ops::Filters& w, const ops::StreamingConv& conv) {
    auto frames = noise_array({1, 40, w.w.channels()}, 1);
    return gpu::fits_tile_conv({split_at(frames, 0), w, conv, 0});
  };
  CHECK(fits(filters, conv));
  CHECK_FALSE(fits(filters_of(48, 3, 32), conv));
  CHECK_FALSE(fits(filters_of(32, 3, 48), conv));
  auto strided = conv;
  strided.shape.stride = 2;
  CHECK_FALSE(fits(filters, strided));
  auto active = conv;
  active.epilogue.activation = ops::Activation::elu;
  CHECK_FALSE(fits(filters, active));
  ops::Filters floats = filters;
  floats.halves = std::nullopt;
  CHECK_FALSE(fits(floats, conv));
  CHECK_THROWS_AS(
      gpu::tile_conv({split_at(x, 0), floats, conv, 0}, kernel_stream()),
      Error);
}
