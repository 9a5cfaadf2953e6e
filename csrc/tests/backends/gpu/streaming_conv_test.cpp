#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "ops/arrays.h"
#include "ops/frame_spans.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("kernel unfold: rows in two parts, through Snake, and what is kept") {
  auto s = kernel_stream();
  for (auto [channels, taps, dilation] :
       {std::tuple{1, 3, 1}, {8, 3, 1}, {8, 7, 5}, {6, 11, 3}, {12, 1, 1}}) {
    for (int split : {0, 1, 8, 29}) {
      for (auto [left, right] : {std::pair{0, 0}, {10, 0}, {0, 10}}) {
        CAPTURE(channels);
        CAPTURE(taps);
        CAPTURE(split);
        CAPTURE(left);
        auto x = noise_array({1, 40, channels}, 1);
        auto w = noise_array({4, taps, channels}, 2);
        auto alpha = alpha_of(channels);
        ops::StreamingConv conv{
            .shape = {1, dilation, 1, left, right}, .snake = alpha};
        conv.keep = right == 0;
        int results = conv.shape.output_rows(40, taps);
        if (results == 0) {
          continue;
        }
        auto output = gpu::streaming_conv1d(
            split_at(x, split), gpu::make_filters(w, false, s), conv, s);
        auto expected = reference::conv1d(
            reference::snake(x, alpha, cpu_stream()),
            w,
            {conv.shape},
            cpu_stream());
        CHECK(
            relative_error(output.y, values(expected)) < graph_tolerance(2e-6));
        check_kept(output.kept, x, conv.keep ? conv.first_kept(results) : 40);
      }
    }
  }
}

TEST_CASE("kernel epilogue: a residual in two parts, from any row on") {
  auto s = kernel_stream();
  auto x = noise_array({1, 30, 8}, 1);
  for (int channels : {4, 7}) {
    auto w = noise_array({channels, 3, 8}, 2);
    auto residual = noise_array({1, 50, channels}, 3);
    for (int split : {0, 1, 3, 20, 45}) {
      for (int begin : {0, 2, 20, 22}) {
        CAPTURE(channels);
        CAPTURE(split);
        CAPTURE(begin);
        ops::StreamingConv conv{
            .epilogue = {.bias = noise_array({channels}, 4)},
            .residual = split_at(residual, split),
            .residual_begin = begin};
        auto output = gpu::streaming_conv1d(
            split_at(x, 0), gpu::make_filters(w, false, s), conv, s);
        ops::Epilogue whole = conv.epilogue;
        whole.residual = rows_of(residual, begin, begin + 28);
        auto expected = reference::conv1d(x, w, {{}, whole}, cpu_stream());
        CHECK(
            relative_error(output.y, values(expected)) < graph_tolerance(2e-6));
        check_kept(output.kept, x, 28);
      }
    }
  }
}

TEST_CASE("kernel overlap: rows in two parts, and what is kept") {
  auto s = kernel_stream();
  auto x = noise_array({1, 20, 8}, 1), w = noise_array({6, 7, 8}, 2);
  ops::TransposedFilters filters{w, noise_array({6}, 3)};
  ops::ConvTranspose1d shape{3, 2, 5};
  auto expected = reference::conv_transpose1d(x, filters, shape, cpu_stream());
  for (int split : {0, 1, 2, 19}) {
    for (int keep : {0, 2, 19}) {
      CAPTURE(split);
      CAPTURE(keep);
      auto output = gpu::streaming_conv_transpose1d(
          split_at(x, split), filters, {shape, keep}, s);
      CHECK(relative_error(output.y, values(expected)) < graph_tolerance(2e-6));
      check_kept(output.kept, x, 20 - keep);
    }
  }
}

TEST_CASE("kernel merge: the sum of streams, and their mean") {
  auto s = kernel_stream();
  for (int channels : {1, 3, 8}) {
    auto a = noise_array({1, 300, channels}, 1);
    auto b = noise_array({1, 211, channels}, 2);
    auto c = noise_array({1, 250, channels}, 3);
    for (int count : {1, 40, 211}) {
      CAPTURE(channels);
      CAPTURE(count);
      auto first = [&](const mx::array& x) { return rows_of(x, 0, count); };
      auto two = mx::add(first(a), first(b), cpu_stream());
      auto sum = gpu::add_frames({split_at(a, 9), split_at(b, 0)}, count, s);
      CHECK(same_bits(sum.y, two));
      REQUIRE(sum.kept.size() == 2);
      check_kept(sum.kept[0], a, count);
      check_kept(sum.kept[1], b, count);

      std::vector<ops::FrameSpan> parts{
          split_at(a, 0), split_at(b, 200), split_at(c, 8)};
      auto mean = gpu::mean_frames(parts, count, 0.1f, s);
      auto three = mx::add(two, first(c), cpu_stream());
      auto expected = reference::leaky_relu(
          mx::divide(three, mx::array(3.0f), cpu_stream()), 0.1f, cpu_stream());
      CHECK(relative_error(mean.y, values(expected)) < 1e-6);
      check_kept(mean.kept[0], a, count);
      check_kept(mean.kept[1], b, count);
      check_kept(mean.kept[2], c, count);
    }
  }
}
