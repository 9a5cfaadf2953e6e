#include "nightingale/ops/convolution.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "convolution_reference.h"
#include "epilogue_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

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
              auto y = cpu::conv1d(x, w, shape, {}, cpu_stream());
              CHECK(relative_error(y, expected) < 1e-6);
              y = reference::conv1d(x, w, shape, {}, graph_stream());
              CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("conv1d of a filter for every channel") {
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
          auto y = cpu::conv1d(x, w, shape, {}, cpu_stream());
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
        auto y = cpu::conv1d(x, w, shape, epilogue, cpu_stream());
        CHECK(relative_error(y, expected) < 2e-6);
        y = reference::conv1d(x, w, shape, epilogue, graph_stream());
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
    auto y = cpu::conv1d(x, w, shape, {}, cpu_stream());
    CHECK(y.dtype() == mx::bfloat16);
    CHECK(relative_error(y, expected) < 4e-3);
    ops::Epilogue epilogue{.residual = noise_array({1, 30, 12}, 3)};
    y = cpu::conv1d(x, w, shape, epilogue, cpu_stream());
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
    auto y = cpu::conv1d(x, w, shape, {}, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(relative_error(y, conv1d_reference(x, w, shape)) < 1e-6);
  }
}

TEST_CASE("conv1d of an input shorter than its kernel has no rows") {
  auto x = noise_array({1, 2, 4}, 1), w = noise_array({3, 5, 4}, 2);
  auto y = cpu::conv1d(x, w, {}, {}, cpu_stream());
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{1, 0, 3});
}

TEST_CASE("conv1d of every layout of its inputs") {
  auto x = noise_array({2, 11, 6}, 1), w = noise_array({4, 3, 3}, 2);
  ops::Conv1d shape{.groups = 2, .pad_left = 1, .pad_right = 1};
  for (auto [form, conv1d, s] : forms(cpu::conv1d, reference::conv1d)) {
    CAPTURE(form);
    check_views(x, [&](auto& v) { return conv1d(v, w, shape, {}, s); });
    check_views(w, [&](auto& v) { return conv1d(x, v, shape, {}, s); });
  }
}
