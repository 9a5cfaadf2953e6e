#include "nightingale/ops/matrix.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/error.h"

using namespace nightingale;
using namespace nightingale::testing;
using ops::Matrix;

namespace {

mx::array small_weights(int rows, int columns, mx::Dtype dtype) {
  auto w = mx::multiply(
      noise_array({rows, columns}, 7), mx::array(0.03f), cpu_stream());
  auto typed = mx::astype(w, dtype, cpu_stream());
  mx::eval(typed);
  return typed;
}

// MLX's own quantization, decoded with scales and biases of float16.
mx::array decoded_by_mlx(const mx::array& w, int bits) {
  auto s = cpu_stream();
  auto parts = mx::quantize(
      mx::astype(w, mx::float32, s), 64, bits, "affine", std::nullopt, s);
  auto half = [&](const mx::array& x) {
    return mx::astype(mx::astype(x, mx::float16, s), mx::float32, s);
  };
  return mx::dequantize(
      parts[0],
      half(parts[1]),
      half(parts[2]),
      64,
      bits,
      "affine",
      std::nullopt,
      mx::float32,
      s);
}

// The sum of squared differences of each group of 64.
Values group_errors(const mx::array& a, const mx::array& b) {
  Values x = values(a), y = values(b), sums(x.size() / 64, 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    sums[i / 64] += (x[i] - y[i]) * (x[i] - y[i]);
  }
  return sums;
}

double sum(const Values& x) {
  double total = 0.0;
  for (double each : x) {
    total += each;
  }
  return total;
}

bool same(const mx::array& a, const mx::array& b) {
  return a.dtype() == b.dtype() &&
      mx::array_equal(a, b, cpu_stream()).item<bool>();
}

} // namespace

TEST_CASE("quantized weights are closer than MLX's, in every group") {
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int bits : {8, 4}) {
      CAPTURE(bits);
      auto w = small_weights(70, 256, dtype);
      auto matrix = Matrix::quantized(w, bits, s);
      CHECK(matrix.rows() == 70);
      CHECK(matrix.columns() == 256);
      Values ours = group_errors(matrix.dequantized(mx::float32, s), w);
      Values theirs = group_errors(decoded_by_mlx(w, bits), w);
      int worse = 0;
      for (size_t i = 0; i < ours.size(); ++i) {
        worse += ours[i] > 1.0001 * theirs[i];
      }
      CHECK(worse == 0);
      CHECK(sum(ours) < 0.9 * sum(theirs));
    }
  }
}

TEST_CASE("weights that are multiples of their scale come back exactly") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    std::vector<float> w;
    for (int i = 0; i < 3 * 128; ++i) {
      int code = i % 64 == 1 ? 0 : i % 64 == 2 ? (1 << bits) - 1 : i * 7;
      w.push_back(0.25f * (code % (1 << bits)) - 1.5f);
    }
    auto exact = array_of(w, {3, 128});
    auto matrix = Matrix::quantized(exact, bits, s);
    CHECK(same(matrix.dequantized(mx::float32, s), exact));
  }
}

TEST_CASE("groups of one value, of zeros and of very small values") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    std::vector<float> w(4 * 64, 0.0f);
    std::fill_n(w.begin() + 64, 64, 0.625f);
    std::fill_n(w.begin() + 128, 64, -3.0f);
    w[200] = 1e-20f;
    auto matrix = Matrix::quantized(array_of(w, {4, 64}), bits, s);
    auto back = floats(matrix.dequantized(mx::float32, s));
    for (size_t i = 0; i < w.size(); ++i) {
      CHECK(std::fabs(back[i] - w[i]) < 1e-7f);
    }
  }
}

TEST_CASE("a quantized tensor goes into a matrix and comes out unchanged") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    for (mx::Dtype dtype : kFloatTypes) {
      for (int rows : {1, 31, 32, 70}) {
        CAPTURE(rows);
        auto parts = mx::quantize(
            small_weights(rows, 192, dtype),
            64,
            bits,
            "affine",
            std::nullopt,
            s);
        auto matrix =
            Matrix::from_quantized(parts[0], parts[1], parts[2], bits, s);
        CHECK(matrix.rows() == rows);
        CHECK(matrix.columns() == 192);
        auto [quantized, scales, biases] = matrix.unpacked();
        CHECK(same(quantized, parts[0]));
        CHECK(same(scales, mx::astype(parts[1], mx::float16, s)));
        CHECK(same(biases, mx::astype(parts[2], mx::float16, s)));
        auto again = Matrix::from_quantized(quantized, scales, biases, bits, s);
        CHECK(same(again.w, matrix.w));
        auto floats = mx::dequantize(
            quantized,
            mx::astype(scales, mx::float32, s),
            mx::astype(biases, mx::float32, s),
            64,
            bits,
            "affine",
            std::nullopt,
            mx::float32,
            s);
        CHECK(same(matrix.dequantized(mx::float32, s), floats));
        CHECK(same(
            matrix.dequantized(mx::bfloat16, s),
            mx::astype(floats, mx::bfloat16, s)));
      }
    }
  }
}

TEST_CASE("quantized tensors are read from any layout") {
  auto s = cpu_stream();
  auto w = small_weights(40, 128, mx::float32);
  auto expected = Matrix::quantized(w, 4, s);
  for (const auto& view : views_of(w)) {
    CAPTURE(view.name);
    CHECK(same(Matrix::quantized(view.array, 4, s).w, expected.w));
  }
  auto [quantized, scales, biases] = expected.unpacked();
  auto packed = [&](const auto& c, const auto& a, const auto& b) {
    return Matrix::from_quantized(c, a, b, 4, s).w;
  };
  auto turned = [&](const mx::array& x) {
    auto t = mx::contiguous(mx::transpose(x, s), false, s);
    return mx::transpose(t, s);
  };
  CHECK(same(
      packed(turned(quantized), turned(scales), turned(biases)), expected.w));
}

TEST_CASE(
    "a quantized matrix takes the memory of its bits, scales and biases") {
  auto s = cpu_stream();
  auto w = small_weights(96, 256, mx::float32);
  size_t numbers = 96 * 256, groups = numbers / 64;
  CHECK(Matrix::quantized(w, 8, s).nbytes() == numbers + 4 * groups);
  CHECK(Matrix::quantized(w, 4, s).nbytes() == numbers / 2 + 4 * groups);
}

TEST_CASE("what cannot be quantised is refused") {
  auto s = cpu_stream();
  auto quantized = [&](const mx::array& w, int bits) {
    return Matrix::quantized(w, bits, s);
  };
  CHECK_THROWS_WITH_AS(
      quantized(noise_array({4, 64}, 1), 3),
      "weights take 8 or 4 bits, not 3",
      nightingale::Error);
  CHECK_THROWS_WITH_AS(
      quantized(noise_array({4, 96}, 1), 8),
      "a matrix of 96 columns cannot be quantised in groups of 64",
      nightingale::Error);
  for (float bad : {NAN, INFINITY, -INFINITY, 1e6f}) {
    auto numbers = noise(2 * 64, 1);
    numbers[70] = bad;
    CHECK_THROWS_WITH_AS(
        quantized(array_of(numbers, {2, 64}), 8),
        "weights that are not finite, or too large for scales in float16, "
        "cannot be quantised",
        nightingale::Error);
  }
  CHECK_THROWS_WITH_AS(
      quantized(mx::astype(noise_array({4, 64}, 1), mx::int32, s), 8),
      "expected a float32, float16 or bfloat16 array",
      nightingale::Error);
}

TEST_CASE("quantized tensors that do not fit together are refused") {
  auto s = cpu_stream();
  auto parts =
      mx::quantize(noise_array({6, 128}, 1), 64, 8, "affine", std::nullopt, s);
  auto from =
      [&](const auto& quantized, const auto& scales, const auto& biases) {
        return Matrix::from_quantized(quantized, scales, biases, 8, s);
      };
  CHECK_THROWS_WITH_AS(
      from(parts[0], parts[1], mx::slice(parts[2], {0, 0}, {5, 2}, s)),
      "8-bit quantized weights are uint32 [N, K * 8 / 32], their scales and "
      "biases "
      "floating [N, K / 64]; found uint32 (6,32), float32 (6,2) and float32 "
      "(5,2)",
      nightingale::Error);
  auto narrow = mx::slice(parts[0], {0, 0}, {6, 16}, s);
  CHECK_THROWS_AS(from(narrow, parts[1], parts[2]), nightingale::Error);
  auto quantized = mx::view(parts[0], mx::int32, s);
  CHECK_THROWS_AS(from(quantized, parts[1], parts[2]), nightingale::Error);
  CHECK_THROWS_AS(
      Matrix::from_quantized(parts[0], parts[1], parts[2], 4, s),
      nightingale::Error);
  auto large = mx::multiply(parts[1], mx::array(1e9f), s);
  CHECK_THROWS_WITH_AS(
      from(parts[0], large, parts[2]),
      "scales and biases of quantized weights must be finite in float16",
      nightingale::Error);
  CHECK_THROWS_WITH_AS(
      Matrix(noise_array({4, 64}, 1)).unpacked(),
      "the matrix is not quantized",
      nightingale::Error);
}
