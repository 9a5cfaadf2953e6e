// Convolutions with quantized weights.

#include <doctest/doctest.h>

#include <random>

#include "arrays.h"
#include "backends/cpu/thread_count.h"
#include "convolution_reference.h"
#include "epilogue_reference.h"
#include "nightingale/backends/cpu/quantized_product.h"
#include "nightingale/error.h"
#include "nightingale/ops/linear.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Rows are rounded to 1 in 65,024 of the largest number beside them.
constexpr double kRounding = 1e-4;

ops::Kernel quantized_of(int filters, int taps, int channels, int bits = 8) {
  return ops::Kernel::quantized(
      noise_array({filters, taps, channels}, 2), bits, cpu_stream());
}

// The dequantized weights: [O, K, C]
mx::array dequantized(const ops::Kernel& w) {
  auto s = cpu_stream();
  auto floats = mx::reshape(
      w.matrix.dequantized(mx::float32, s),
      {w.filters(), w.taps, w.channels()},
      s);
  mx::eval(floats);
  return floats;
}

} // namespace

TEST_CASE("conv1d of quantized weights is conv1d of the dequantized ones") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    for (auto [length, filters, channels] :
         {std::tuple{9, 1, 64}, {41, 32, 128}, {85, 33, 64}, {90, 70, 192}}) {
      for (int taps : {1, 3, 4}) {
        auto x = noise_array({2, length, channels}, 1);
        auto w = quantized_of(filters, taps, channels, bits);
        for (int stride : {1, 2}) {
          for (int dilation : {1, 2}) {
            for (auto [left, right] : {std::pair(0, 0), std::pair(3, 1)}) {
              CAPTURE(bits);
              CAPTURE(length);
              CAPTURE(taps);
              CAPTURE(stride);
              CAPTURE(dilation);
              CAPTURE(left);
              ops::Conv1d shape{stride, dilation, 1, left, right};
              auto y = ops::conv1d(x, w, {shape}, s);
              CHECK(y.shape(1) == shape.output_rows(length, taps));
              CHECK(
                  relative_error(
                      y, conv1d_reference(x, dequantized(w), shape)) <
                  kRounding);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("conv1d of quantized weights, of random shapes") {
  std::mt19937 random(7);
  auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  for (int i = 0; i < 40; ++i) {
    int channels = 64 * (1 + below(5)), taps = 1 + below(11);
    ops::Conv1d shape{1 + below(3), 1 + below(5), 1, below(20), below(20)};
    int length = (taps - 1) * shape.dilation + 1 + below(150);
    CAPTURE(channels);
    CAPTURE(taps);
    CAPTURE(length);
    auto x = noise_array({1 + below(2), length, channels}, i);
    auto w = quantized_of(1 + below(100), taps, channels);
    auto y = ops::conv1d(x, w, {shape}, cpu_stream());
    CHECK(
        relative_error(y, conv1d_reference(x, dequantized(w), shape)) <
        kRounding);
  }
}

TEST_CASE("conv1d of quantized weights with every epilogue, of every type") {
  auto s = cpu_stream();
  auto w = quantized_of(70, 3, 64);
  ops::Conv1d shape{.dilation = 3, .pad_left = 6};
  auto x = noise_array({2, 50, 64}, 1);
  Values sums = conv1d_reference(x, dequantized(w), shape);
  int index = 0;
  for (const auto& epilogue : epilogues({2, 50, 70})) {
    CAPTURE(index++);
    auto y = ops::conv1d(x, w, {shape, epilogue}, s);
    CHECK(
        relative_error(y, apply_epilogue_reference(sums, 70, epilogue)) <
        kRounding);
  }
  auto half = noise_array({2, 50, 64}, 1, mx::bfloat16);
  auto y = ops::conv1d(half, w, {shape}, s);
  CHECK(y.dtype() == mx::bfloat16);
  CHECK(
      relative_error(y, conv1d_reference(half, dequantized(w), shape)) < 5e-3);
  check_views(x, [&](auto& v) { return ops::conv1d(v, w, {shape}, s); });
}

TEST_CASE("a quantized convolution of one tap has the bits of the product") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    auto w = quantized_of(96, 1, 128, bits);
    for (int rows : {1, ops::kBatchInvariantRows, 17, 333}) {
      CAPTURE(bits);
      CAPTURE(rows);
      auto x = noise_array({1, rows, 128}, 1);
      auto product = floats(ops::linear(x, w.one_tap(), {}, s));
      CHECK(same_bits(floats(ops::conv1d(x, w, {}, s)), product));
    }
  }
}

TEST_CASE(
    "conv1d of quantized weights is invariant to threads and other rows") {
  auto s = cpu_stream();
  auto w = quantized_of(96, 3, 64);
  auto x = noise_array({1, 600, 64}, 1);
  ops::Conv1d shape{.pad_left = 2};
  auto run = [&](const mx::array& rows) {
    return floats(ops::conv1d(rows, w, {shape}, s));
  };
  std::vector<float> one;
  {
    ThreadCount single(1);
    one = run(x);
  }
  ThreadCount several(3);
  CHECK(same_bits(run(x), one));
  auto first = run(mx::slice(x, {0, 0, 0}, {1, 47, 64}, s));
  one.resize(first.size());
  CHECK(same_bits(first, one));
}

TEST_CASE("channels of a kernel are sliced exactly, floats and quantized") {
  auto s = cpu_stream();
  auto floats_kernel = ops::Kernel(noise_array({40, 3, 192}, 2));
  auto quantized = ops::Kernel::quantized(floats_kernel.matrix.w, 8, s);
  auto expected =
      mx::slice(dequantized(quantized), {0, 0, 64}, {40, 3, 192}, s);
  CHECK(same_bits(
      floats(dequantized(quantized.channels_of(64, 128))), floats(expected)));
  CHECK(same_bits(
      floats(floats_kernel.channels_of(64, 128).matrix.w),
      floats(mx::slice(floats_kernel.matrix.w, {0, 0, 64}, {40, 3, 192}, s))));
  CHECK_THROWS_AS(quantized.channels_of(32, 64), Error);
}

TEST_CASE("dequantized panels give the product that integers give") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    for (auto [rows, filters] : {std::pair(5, 1), {40, 33}, {90, 100}}) {
      CAPTURE(bits);
      CAPTURE(filters);
      auto w = quantized_of(filters, 3, 128, bits);
      auto floats = dequantized(w);
      cpu::PackedQuantized quantized(w.matrix.w, filters, bits);
      std::vector<float> back(floats.size());
      cpu::decode_rows(quantized, 0, filters, back.data());
      CHECK(same_bits(back, testing::floats(floats)));

      auto x = noise_array({1, rows, 128}, 1);
      ops::Conv1d shape{.pad_left = 2};
      mx::array y = mx::zeros({rows, filters}, mx::float32, s);
      mx::eval(y);
      cpu::EpilogueWriter epilogue;
      epilogue.y = y.data<float>();
      epilogue.stride = filters;
      cpu::product(
          cpu::conv_windows(x, x.data<float>(), 128, 3, shape),
          quantized,
          epilogue);
      CHECK(relative_error(y, conv1d_reference(x, floats, shape)) < 1e-6);
      if (cpu::has_bf16_matrix_units()) {
        auto half = noise_array({1, rows, 128}, 1, mx::bfloat16);
        cpu::matrix_product(
            cpu::conv_windows(half, half.data<uint16_t>(), 128, 3, shape),
            quantized,
            epilogue);
        auto rounded =
            mx::astype(mx::astype(floats, mx::bfloat16, s), mx::float32, s);
        CHECK(relative_error(y, conv1d_reference(half, rounded, shape)) < 1e-5);
      }
    }
  }
}

TEST_CASE("conv1d of quantized weights refuses rows that do not fit") {
  auto s = cpu_stream();
  auto w = quantized_of(32, 3, 128);
  CHECK_THROWS_AS(ops::conv1d(noise_array({1, 9, 64}, 1), w, {}, s), Error);
  CHECK_THROWS_AS(
      ops::conv1d(noise_array({1, 9, 128}, 1), w, {{.groups = 2}}, s), Error);
}
