// Products with quantized matrices: their values, and that results are
// batch-invariant, which speculative decoding relies on.

#include <doctest/doctest.h>

#include "arrays.h"
#include "backends/cpu/thread_count.h"
#include "epilogue_reference.h"
#include "linear_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/error.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/rotary.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr float kEps = 1e-5f;

ops::Matrix quantized_of(int rows, int columns, int bits, uint32_t seed = 2) {
  return ops::Matrix::quantized(
      noise_array({rows, columns}, seed), bits, cpu_stream());
}

mx::array decoded(const ops::Matrix& w) {
  auto floats = w.dequantized(mx::float32, cpu_stream());
  mx::eval(floats);
  return floats;
}

// Rows are rounded to 1 in 65,024 of the largest number beside them.
constexpr double kRounding = 1e-4;

// Every op with quantized weights on x: [1, rows, 128].
std::vector<mx::array> all_ops(const mx::array& x, int bits) {
  auto s = cpu_stream();
  static const ops::Matrix w[2] = {
      quantized_of(70, 128, 8), quantized_of(70, 128, 4)};
  static const ops::Matrix pair[2] = {
      quantized_of(192, 128, 8), quantized_of(192, 128, 4)};
  const auto& one = w[bits == 4];
  const auto& both = pair[bits == 4];
  auto norm = noise_array({128}, 5);
  auto residual = mx::slice(x, {0, 0, 0}, {1, x.shape(1), 70}, s);
  return {
      ops::linear(x, one, {}, s),
      ops::linear(
          x, one, {.bias = noise_array({70}, 3), .residual = residual}, s),
      ops::norm_linear(x, {norm, kEps}, one, {}, s),
      ops::norm_swiglu(x, {norm, kEps}, both, s)};
}

} // namespace

TEST_CASE("quantized linear is linear with the dequantized weights") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    for (auto [rows, columns, outputs] :
         {std::tuple{1, 64, 1},
          {2, 128, 32},
          {3, 192, 33},
          {17, 64, 100},
          {40, 1024, 70}}) {
      CAPTURE(bits);
      CAPTURE(rows);
      CAPTURE(outputs);
      auto x = noise_array({1, rows, columns}, 1);
      auto w = quantized_of(outputs, columns, bits);
      Values sums = linear_reference(x, decoded(w));
      mx::Shape shape{1, rows, outputs};
      int index = 0;
      for (const auto& epilogue : epilogues(shape)) {
        CAPTURE(index++);
        auto y = ops::linear(x, w, epilogue, s);
        CHECK(y.shape() == shape);
        CHECK(y.dtype() == mx::float32);
        Values expected = apply_epilogue_reference(sums, outputs, epilogue);
        CHECK(relative_error(y, expected) < kRounding);
      }
    }
  }
}

TEST_CASE("integer rows times quantized weights are exact") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    int most = (1 << bits) - 1;
    std::vector<float> w, x;
    for (int i = 0; i < 40 * 128; ++i) {
      int code = i % 64 == 0 ? 0 : i % 64 == 1 ? most : i * 37 % (most + 1);
      w.push_back(code - 3.0f);
    }
    for (int i = 0; i < 3 * 128; ++i) {
      x.push_back(i % 64 == 5 ? 32512.0f : i * 91 % 65025 - 32512);
    }
    auto weights = array_of(w, {40, 128}), rows = array_of(x, {3, 128});
    auto y = ops::linear(rows, ops::Matrix::quantized(weights, bits, s), {}, s);
    CHECK(relative_error(y, linear_reference(rows, weights)) < 2e-7);
  }
}

// Each group of a row rounded to integers up to 127 of one scale.
mx::array rounded_to_8_bits(const mx::array& x) {
  auto rounded = floats(x);
  for (size_t first = 0; first < rounded.size(); first += ops::Matrix::kGroup) {
    float* group = rounded.data() + first;
    float most = 0;
    for (int i = 0; i < ops::Matrix::kGroup; ++i) {
      most = std::max(most, std::fabs(group[i]));
    }
    for (int i = 0; i < ops::Matrix::kGroup; ++i) {
      group[i] = std::nearbyint(group[i] * (127.0f / most)) * (most / 127.0f);
    }
  }
  return array_of(rounded, x.shape());
}

TEST_CASE("rows of 8 bits are multiplied exactly") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    auto w = quantized_of(70, 192, bits);
    w.row_bits = 8;
    for (int rows : {1, 2, 9, 16, 17, 90}) {
      CAPTURE(bits);
      CAPTURE(rows);
      auto x = noise_array({1, rows, 192}, 1);
      Values expected = linear_reference(rounded_to_8_bits(x), decoded(w));
      auto y = ops::linear(x, w, {}, s);
      CHECK(relative_error(y, expected) < 2e-6);

      ops::Kernel kernel = ops::Kernel::quantized(
          mx::reshape(decoded(w), {70, 1, 192}, s), bits, s);
      kernel.matrix.row_bits = 8;
      auto one_tap = floats(ops::linear(x, kernel.one_tap(), {}, s));
      CHECK(same_bits(floats(ops::conv1d(x, kernel, {}, s)), one_tap));

      auto norm = noise_array({192}, 5);
      auto normed = ops::rms_norm(x, {norm, kEps}, s);
      CHECK(same_bits(
          floats(ops::norm_linear(x, {norm, kEps}, w, {}, s)),
          floats(ops::linear(normed, w, {}, s))));
    }
    CHECK(w.columns_of(64, 128).row_bits == 8);
  }
}

TEST_CASE("quantized linear takes rows of every type and layout") {
  auto s = cpu_stream();
  auto w = quantized_of(40, 128, 8);
  for (mx::Dtype dtype : kFloatTypes) {
    auto x = noise_array({2, 3, 128}, 1, dtype);
    auto y = ops::linear(x, w, {}, s);
    CHECK(y.dtype() == dtype);
    double rounding = dtype == mx::float32 ? kRounding
        : dtype == mx::float16             ? 5e-4
                                           : 4e-3;
    CHECK(relative_error(y, linear_reference(x, decoded(w))) < rounding);
    check_views(x, [&](auto& v) { return ops::linear(v, w, {}, s); });
  }
}

TEST_CASE("quantized norm_linear and norm_swiglu are made of their parts") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    for (int rows : {1, 2, 5, 17, 90}) {
      for (int features : {35, 96}) { // halves of a tile and whole ones
        auto x = noise_array({1, rows, 64}, 1), norm = noise_array({64}, 2);
        auto w = quantized_of(2 * features, 64, bits);
        auto normed = cpu::rms_norm(x, {norm, kEps}, s);
        auto product = ops::linear(normed, w, {}, s);
        CHECK(same_bits(ops::norm_linear(x, {norm, kEps}, w, {}, s), product));
        CHECK(same_bits(
            ops::norm_swiglu(x, {norm, kEps}, w, s), cpu::swiglu(product, s)));
        auto shift = noise_array({64}, 4);
        ops::Epilogue epilogue{
            .bias = noise_array({2 * features}, 5),
            .activation = ops::Activation::gelu_tanh};
        auto shifted = cpu::layer_norm(x, {norm, shift, kEps}, mx::float32, s);
        CHECK(same_bits(
            ops::norm_linear(x, {norm, kEps, shift}, w, epilogue, s),
            ops::linear(shifted, w, epilogue, s)));
      }
    }
  }
}

TEST_CASE("projected_attention takes a quantized output matrix") {
  auto s = cpu_stream();
  auto frequencies = ops::rotary_frequencies(64, {});
  auto qkv = noise_array({2, 3, 3 * 128}, 1);
  auto residual = noise_array({2, 3, 128}, 2);
  auto w = quantized_of(128, 128, 8);
  auto run = [&](const ops::Matrix& out) {
    mx::Shape shape{2, 2, 8, 64};
    ops::LayerCache cache{
        ops::make_cache(shape, mx::float32, s),
        ops::make_cache(shape, mx::float32, s)};
    return ops::projected_attention(
               {qkv, frequencies, cache, 0}, out, residual, s)
        .out;
  };
  CHECK(relative_error(run(w), values(run(decoded(w)))) < kRounding);
}

TEST_CASE("quantized products are batch-invariant") {
  auto x = noise_array({1, 300, 128}, 1);
  for (int bits : {8, 4}) {
    CAPTURE(bits);
    auto whole = all_ops(x, bits);
    auto check = [&](int begin, int end) {
      CAPTURE(begin);
      CAPTURE(end);
      auto part = all_ops(rows_of(x, begin, end), bits);
      for (size_t i = 0; i < part.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(part[i], rows_of(whole[i], begin, end)));
      }
    };
    for (int count = 1; count <= 17; ++count) {
      check(0, count);
      check(300 - count, 300);
    }
    check(3, 250);
  }
}

TEST_CASE("rows in several blocks have the same bits as alone") {
  auto s = cpu_stream();
  // 8192 columns: 64 rows to a block.
  auto x = noise_array({1, 130, 8192}, 1);
  auto w = quantized_of(40, 8192, 4);
  auto whole = ops::linear(x, w, {}, s);
  for (int row : {0, 63, 64, 129}) {
    CAPTURE(row);
    auto one = ops::linear(rows_of(x, row, row + 1), w, {}, s);
    CHECK(same_bits(one, rows_of(whole, row, row + 1)));
  }
}

TEST_CASE("no quantized product depends on the number of threads") {
  for (int rows : {1, 2, 50}) {
    auto x = noise_array({1, rows, 128}, 1);
    for (int bits : {8, 4}) {
      std::vector<std::vector<float>> alone;
      {
        ThreadCount one(1);
        for (const auto& y : all_ops(x, bits)) {
          alone.push_back(floats(y));
        }
      }
      for (int threads : {2, 3}) {
        ThreadCount count(threads);
        auto many = all_ops(x, bits);
        for (size_t i = 0; i < many.size(); ++i) {
          CHECK(same_bits(floats(many[i]), alone[i]));
        }
      }
    }
  }
}

TEST_CASE("a row that is not finite is NaN, and no other") {
  auto s = cpu_stream();
  auto w = quantized_of(40, 128, 8);
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    auto numbers = noise(3 * 128, 1);
    auto good = floats(ops::linear(array_of(numbers, {3, 128}), w, {}, s));
    numbers[128 + 77] = bad;
    auto y = floats(ops::linear(array_of(numbers, {3, 128}), w, {}, s));
    for (int i = 0; i < 3 * 40; ++i) {
      if (i / 40 == 1) {
        CHECK(std::isnan(y[i]));
      } else {
        CHECK(y[i] == good[i]);
      }
    }
  }
}

TEST_CASE("rows of zeros and of very small numbers") {
  auto s = cpu_stream();
  auto w = quantized_of(40, 128, 8);
  auto zero =
      floats(ops::linear(mx::zeros({2, 128}, mx::float32, s), w, {}, s));
  CHECK(std::all_of(zero.begin(), zero.end(), [](float y) { return y == 0; }));
  auto x = array_of(noise(128, 1), {1, 128});
  for (float scale : {1e-25f, 1e25f}) {
    auto scaled = mx::multiply(x, mx::array(scale), s);
    auto y = ops::linear(scaled, w, {}, s);
    CHECK(relative_error(y, linear_reference(scaled, decoded(w))) < kRounding);
  }
}

TEST_CASE("quantized linear of no rows gives no rows") {
  auto s = cpu_stream();
  auto y = ops::linear(
      mx::zeros({0, 64}, mx::float32, s), quantized_of(5, 64, 8), {}, s);
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{0, 5});
}

TEST_CASE("rows that do not fit a matrix are refused") {
  auto s = cpu_stream();
  CHECK_THROWS_WITH_AS(
      ops::linear(noise_array({2, 64}, 1), quantized_of(8, 128, 8), {}, s),
      "rows of 64 numbers do not fit a matrix of 128 columns",
      nightingale::Error);
  CHECK_THROWS_WITH_AS(
      ops::norm_linear(
          noise_array({2, 64}, 1),
          {noise_array({64}, 2), kEps},
          noise_array({8, 65}, 3),
          {},
          s),
      "rows of 64 numbers do not fit a matrix of 65 columns",
      nightingale::Error);
}
