#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/attention.h"
#include "nightingale/ops/quantized_cache.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kDepth = 64;

struct Case {
  int batch, length, heads, past, capacity, bits;
  ops::AttentionWatch watch = {};
  mx::Dtype dtype = mx::float32; // of qkv
  float size = 1.0f; // of its values
};

mx::array frequencies() {
  return ops::rotary_frequencies(kDepth, ops::RotaryScaling{});
}

// Positions [0, past) are filled, the rest would read as NaN.
mx::array cache_of(const Case& c, uint32_t seed) {
  auto s = cpu_stream();
  int words = ops::quantized_words(kDepth, c.bits);
  mx::Shape rest{c.batch, c.heads, c.capacity - c.past, words};
  auto poison = mx::full(rest, mx::array(0x7fc07fc0u), s);
  auto filled = reference::encode_heads(
      noise_array({c.batch, c.heads, std::max(c.past, 1), kDepth}, seed),
      c.bits,
      s);
  auto cache = c.past == 0 ? poison : mx::concatenate({filled, poison}, 2, s);
  cache = mx::contiguous(cache, false, s);
  mx::eval(cache);
  return cache;
}

void check(const Case& c) {
  CAPTURE(c.batch);
  CAPTURE(c.length);
  CAPTURE(c.past);
  CAPTURE(c.bits);
  CAPTURE(c.dtype);
  auto s = kernel_stream(), cpu = cpu_stream();
  int hidden = c.heads * kDepth, end = c.past + c.length;
  auto qkv = array_of(
      [&] {
        auto x = noise(size_t(c.batch) * c.length * 3 * hidden, 1);
        for (float& value : x) {
          value *= c.size;
        }
        return x;
      }(),
      {c.batch, c.length, 3 * hidden},
      c.dtype);
  auto residual = noise_array({c.batch, c.length, hidden}, 2, c.dtype);
  auto w = noise_array({hidden, hidden}, 3, c.dtype);
  auto as_float = [&](const mx::array& x) {
    return mx::contiguous(mx::astype(x, mx::float32, cpu), false, cpu);
  };
  auto with = [&](const mx::array& qkv) {
    return ops::AttentionInput{
        qkv, frequencies(), {cache_of(c, 4), cache_of(c, 5)}, c.past, c.watch};
  };
  auto plain = reference::self_attention(with(as_float(qkv)), cpu);
  auto expected = reference::linear(
      plain.out, as_float(w), {.residual = as_float(residual)}, cpu);
  mx::eval(expected, plain.cache.keys, plain.cache.values);

  auto in = with(qkv);
  ops::Matrix projection(w);
  if (c.length == 1) {
    REQUIRE(gpu::can_use_decode_attention(in, projection, s));
  } else {
    REQUIRE(gpu::can_use_prefill_attention(in, s));
  }
  auto actual = gpu::projected_attention(in, projection, residual, s);
  mx::eval(actual.out, *actual.cache.written);
  // A key that the two rotate an ulp apart may be rounded to the next integer.
  double step = c.bits == 8 ? 0.01 : 0.1;
  double tolerance = c.dtype == mx::bfloat16 ? 4e-2 : 1e-2;
  CHECK(
      relative_error(actual.out, values(expected)) < std::max(tolerance, step));
  auto through = [&](const mx::array& whole) {
    mx::Shape stop = whole.shape();
    stop[2] = end;
    auto rows = mx::slice(whole, {0, 0, 0, 0}, stop, cpu);
    return values(reference::decode_heads(rows, c.bits, mx::float32, cpu));
  };
  CHECK(
      relative_error(through(actual.cache.keys), through(plain.cache.keys)) <
      step);
  CHECK(
      relative_error(
          through(actual.cache.values), through(plain.cache.values)) < step);
  REQUIRE(actual.weights.size() == c.watch.heads.size());
  for (size_t i = 0; i < actual.weights.size(); ++i) {
    CHECK(relative_error(actual.weights[i], values(plain.weights[i])) < step);
  }
}

// What a cache holds at `position`, in double.
Values row_at(const mx::array& cache, int position, int bits) {
  auto s = cpu_stream();
  mx::Shape stop = cache.shape();
  stop[2] = position + 1;
  return values(reference::decode_heads(
      mx::slice(cache, {0, 0, position, 0}, stop, s), bits, mx::float32, s));
}

} // namespace

TEST_CASE("kernel decode_attention: quantized caches") {
  for (int bits : {8, 4}) {
    check({1, 1, 1, 0, 1, bits});
    check({2, 1, 2, 1, 4, bits});
    check({2, 1, 1, 127, 130, bits});
    check({1, 1, 2, 128, 129, bits});
    check({2, 1, 1, 300, 512, bits});
  }
  check({2, 1, 2, 40, 64, 8, {}, mx::float16});
  check({2, 1, 2, 40, 64, 4, {}, mx::bfloat16});
}

TEST_CASE("kernel decode_attention: watched heads over quantized caches") {
  check({2, 1, 3, 40, 64, 8, {{1}, 1, 5, 20}});
  check({2, 1, 4, 140, 160, 4, {{3, 0}, 1, 34, 106}});
}

TEST_CASE("kernel append_heads: any number of quantized positions, in place") {
  for (int bits : {8, 4}) {
    check({2, 5, 2, 0, 5, bits});
    check({2, 37, 3, 11, 50, bits});
    check({1, 2, 5, 3, 9, bits}); // more vectors than SIMD groups
    check({1, 3, 1, 2, 9, bits, {}, mx::float16});
    check({1, 3, 1, 2, 9, bits, {}, mx::bfloat16});
  }
}

TEST_CASE("kernel append_heads: zeros, tiny and huge vectors") {
  for (int bits : {8, 4}) {
    for (float size : {0.0f, 1e-20f, 1e15f}) {
      check({1, 3, 1, 2, 9, bits, {}, mx::float32, size});
      check({1, 1, 1, 2, 9, bits, {}, mx::float32, size});
    }
  }
}

TEST_CASE(
    "kernels of quantized caches: a value that is not finite reads as NaN") {
  auto s = kernel_stream();
  for (int length : {1, 3}) {
    for (int bits : {8, 4}) {
      Case c{1, length, 1, 2, 9, bits};
      auto numbers = noise(length * 3 * kDepth, 1);
      numbers[2 * kDepth + 7] = NAN;
      auto qkv = array_of(numbers, {1, length, 3 * kDepth});
      auto residual = noise_array({1, length, kDepth}, 2);
      ops::Matrix w = noise_array({kDepth, kDepth}, 3);
      auto made = gpu::projected_attention(
          {qkv, frequencies(), {cache_of(c, 4), cache_of(c, 5)}, 2},
          w,
          residual,
          s);
      mx::eval(made.out, *made.cache.written);
      auto row = row_at(made.cache.values, 2, bits);
      for (int d = 0; d < kDepth; ++d) {
        CHECK(std::isnan(row[d]) == (d < ops::kCacheGroup)); // those beside it
      }
      for (double x : row_at(made.cache.keys, 2, bits)) {
        CHECK(std::isfinite(x));
      }
    }
  }
}
