#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/attention.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kDepth = 64;

struct Case {
  int rows, heads, past, capacity;
  mx::Dtype cache;
  ops::AttentionWatch watch = {};
  float loud = 1.0f; // what position past - 1 is multiplied by
  bool gpt2 = false; // no rotation, and a bias of the projection
};

mx::array frequencies() {
  return ops::rotary_frequencies(kDepth, ops::RotaryScaling{});
}

// Positions [0, past) are filled, the rest is poison that nothing may read.
mx::array cache_of(const Case& c, uint32_t seed) {
  mx::Shape filled{c.rows, c.heads, c.past, kDepth};
  mx::Shape rest{c.rows, c.heads, c.capacity - c.past, kDepth};
  auto s = cpu_stream();
  auto poison = mx::full(rest, mx::array(NAN, c.cache), s);
  auto numbers = noise(size_t(c.rows) * c.heads * c.past * kDepth, seed);
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] *= i / kDepth % c.past == size_t(c.past - 1) ? c.loud : 1.0f;
  }
  auto cache = c.past == 0
      ? poison
      : mx::concatenate({array_of(numbers, filled, c.cache), poison}, 2, s);
  mx::eval(cache);
  return cache;
}

void check(const Case& c) {
  CAPTURE(c.past);
  CAPTURE(c.rows);
  CAPTURE(c.heads);
  CAPTURE(c.cache);
  auto s = kernel_stream(), cpu = cpu_stream();
  int hidden = c.heads * kDepth;
  auto qkv = noise_array({c.rows, 1, 3 * hidden}, 1);
  auto residual = noise_array({c.rows, 1, hidden}, 2);
  auto w = noise_array({hidden, hidden}, 3, c.cache);
  std::optional<mx::array> turns, bias;
  if (c.gpt2) {
    bias = noise_array({hidden}, 6);
  } else {
    turns = frequencies();
  }
  ops::Projection projection(w, bias);
  auto expected = reference::self_attention(
      {qkv,
       turns,
       {mx::astype(cache_of(c, 4), mx::float32, cpu),
        mx::astype(cache_of(c, 5), mx::float32, cpu)},
       c.past,
       c.watch},
      cpu);
  auto projected = reference::linear(
      expected.out,
      mx::astype(w, mx::float32, cpu),
      {.bias = bias, .residual = residual},
      cpu);

  ops::AttentionInput in{
      qkv, turns, {cache_of(c, 4), cache_of(c, 5)}, c.past, c.watch};
  REQUIRE(gpu::can_use_decode_attention(in, projection, s));
  auto actual = gpu::decode_attention(in, projection, residual, s);
  mx::eval(actual.out, *actual.cache.written);
  // The new key and value are rounded to the cache's type, also for their own
  // query; the reference keeps them.
  double tolerance = c.cache == mx::float32 ? 5e-6
      : c.cache == mx::float16              ? 1e-3
                                            : 8e-3;
  CHECK(relative_error(actual.out, values(projected)) < tolerance);
  auto through = [&](const mx::array& whole) {
    return values(mx::slice(
        whole, {0, 0, 0, 0}, {c.rows, c.heads, c.past + 1, kDepth}, cpu));
  };
  CHECK(
      relative_error(through(actual.cache.keys), through(expected.cache.keys)) <
      tolerance);
  CHECK(
      relative_error(
          through(actual.cache.values), through(expected.cache.values)) <
      tolerance);
  REQUIRE(actual.weights.size() == c.watch.heads.size());
  for (size_t i = 0; i < actual.weights.size(); ++i) {
    CHECK(actual.weights[i].shape() == mx::Shape{c.watch.rows, c.watch.count});
    CHECK(
        relative_error(actual.weights[i], values(expected.weights[i])) <
        tolerance);
  }
}

void check_prefill(
    int batch,
    int length,
    int heads,
    int past,
    int capacity,
    mx::Dtype dtype,
    bool gpt2 = false) {
  CAPTURE(batch);
  CAPTURE(length);
  CAPTURE(past);
  CAPTURE(dtype);
  auto s = kernel_stream(), cpu = cpu_stream();
  int hidden = heads * kDepth;
  auto qkv = noise_array({batch, length, 3 * hidden}, 1, dtype);
  auto residual = noise_array({batch, length, hidden}, 2, dtype);
  auto w = noise_array({hidden, hidden}, 3, dtype);
  std::optional<mx::array> turns, bias;
  if (gpt2) {
    bias = noise_array({hidden}, 6);
  } else {
    turns = frequencies();
  }
  mx::Shape shape{batch, heads, capacity, kDepth};
  auto keys = noise_array(shape, 4, dtype);
  auto values_ = noise_array(shape, 5, dtype);
  auto as_float = [&](const mx::array& x) {
    return mx::contiguous(mx::astype(x, mx::float32, cpu), false, cpu);
  };
  auto plain = reference::self_attention(
      {as_float(qkv), turns, {as_float(keys), as_float(values_)}, past}, cpu);
  auto expected = reference::linear(
      plain.out,
      as_float(w),
      {.bias = bias, .residual = as_float(residual)},
      cpu);
  mx::eval(expected, plain.cache.keys, plain.cache.values);

  ops::AttentionInput in{qkv, turns, {keys, values_}, past};
  REQUIRE(gpu::can_use_prefill_attention(in, s));
  auto actual = gpu::prefill_attention(in, {w, bias}, residual, s);
  mx::eval(actual.out);
  double tolerance = dtype == mx::float32 ? graph_tolerance(5e-6)
      : dtype == mx::float16              ? 5e-3
                                          : 4e-2;
  CHECK(relative_error(actual.out, values(expected)) < tolerance);
  CHECK(
      relative_error(actual.cache.keys, values(plain.cache.keys)) < tolerance);
  CHECK(
      relative_error(actual.cache.values, values(plain.cache.values)) <
      tolerance);
}

} // namespace

TEST_CASE("kernel decode_attention: any number of positions, any cache") {
  for (mx::Dtype dtype : kFloatTypes) {
    check({1, 1, 0, 1, dtype});
    check({2, 2, 1, 4, dtype});
    check({2, 1, 127, 130, dtype});
    check({1, 2, 128, 129, dtype});
    check({2, 1, 300, 512, dtype});
  }
}

TEST_CASE("kernel decode_attention: without rotation, and with a bias") {
  for (mx::Dtype dtype : kFloatTypes) {
    check({1, 1, 0, 1, dtype, {}, 1.0f, true});
    check({2, 2, 140, 150, dtype, {{1}, 1, 5, 20}, 1.0f, true});
  }
}

TEST_CASE("kernel attention_out: more parts than are put together at once") {
  for (int past : {511, 512, 700, 1030}) {
    CAPTURE(past);
    check({2, 1, past, past + 1, mx::float32});
    check({1, 2, past, past + 9, mx::float16, {{1}, 1, past - 200, 150}});
  }
}

TEST_CASE("kernel attention_out: scores that overwhelm those of other parts") {
  check({2, 2, 129, 130, mx::float32, {}, 500.0f});
  check({2, 1, 800, 801, mx::float32, {}, 500.0f});
  check({2, 2, 300, 301, mx::float32, {{1}, 1, 120, 180}, 500.0f});
}

TEST_CASE("kernel attention_out: watched heads give their weights") {
  check({2, 3, 40, 64, mx::float32, {{1}, 1, 5, 20}});
  check({2, 4, 140, 160, mx::float16, {{3, 0}, 1, 34, 106}});
  check({1, 2, 9, 16, mx::bfloat16, {{0}, 1, 0, 10}});
}

TEST_CASE("kernel attention_out: a quantized projection") {
  auto s = kernel_stream(), cpu = cpu_stream();
  Case c{2, 2, 140, 150, mx::float32};
  auto qkv = noise_array({2, 1, 6 * kDepth}, 1);
  auto residual = noise_array({2, 1, 2 * kDepth}, 2);
  auto w = noise_array({2 * kDepth, 2 * kDepth}, 3);
  auto with = [&] {
    return ops::AttentionInput{
        qkv, frequencies(), {cache_of(c, 4), cache_of(c, 5)}, c.past};
  };
  for (int bits : {8, 4}) {
    CAPTURE(bits);
    auto quantized = quantized_for_kernels(w, bits);
    auto floats = quantized.dequantized(mx::float32, cpu);
    auto attended = reference::self_attention(with(), cpu);
    auto expected =
        reference::linear(attended.out, floats, {.residual = residual}, cpu);
    auto actual = gpu::decode_attention(with(), quantized, residual, s);
    CHECK(relative_error(actual.out, values(expected)) < 5e-6);
  }
}

TEST_CASE("kernel decode_attention: many lazy steps write one cache") {
  auto s = kernel_stream(), cpu = cpu_stream();
  int steps = emulated() ? 12 : 400, heads = 2, hidden = heads * kDepth;
  mx::Shape shape{2, heads, steps, kDepth};
  auto w = noise_array({hidden, hidden}, 3);
  auto scaled = mx::multiply(w, mx::array(0.05f), cpu);
  mx::eval(scaled);
  ops::Matrix projection(scaled);
  auto input = [&](const mx::array& x, mx::Stream on) {
    return mx::concatenate({x, mx::negative(x, on), x}, 2, on);
  };
  auto start = noise_array({2, 1, hidden}, 6);
  auto x = start, y = start;
  ops::LayerCache cache{
      mx::zeros(shape, mx::float32, s), mx::zeros(shape, mx::float32, s)};
  auto zeros = mx::zeros(shape, mx::float32, cpu);
  ops::LayerCache plain{zeros, zeros};
  for (int past = 0; past < steps; ++past) {
    auto step = gpu::decode_attention(
        {input(x, s), frequencies(), cache, past}, projection, x, s);
    x = step.out;
    cache = step.cache;
    auto expected = reference::self_attention(
        {input(y, cpu), frequencies(), plain, past}, cpu);
    y = reference::linear(expected.out, scaled, {.residual = y}, cpu);
    plain = expected.cache;
    if (past % 50 == 49) {
      mx::eval(y);
    }
  }
  CHECK(relative_error(x, values(y)) < 1e-4);
}

TEST_CASE("kernel decode_attention: other shapes are left to MLX") {
  auto s = kernel_stream();
  ops::Matrix w = noise_array({128, 128}, 3);
  auto supported = [&](int length, int depth) {
    auto zeros = mx::zeros({1, 128 / depth, 4, depth}, mx::float32);
    ops::AttentionInput in{
        mx::zeros({1, length, 384}), frequencies(), {zeros, zeros}, 0};
    return gpu::can_use_decode_attention(in, w, s);
  };
  CHECK(supported(1, 64));
  CHECK_FALSE(supported(2, 64));
  CHECK_FALSE(supported(1, 32));
}

TEST_CASE("kernel append_heads: any number of positions, written in place") {
  for (mx::Dtype dtype : kFloatTypes) {
    check_prefill(1, 1, 1, 0, 4, dtype);
    check_prefill(2, 5, 2, 0, 5, dtype);
    check_prefill(2, 37, 3, 11, 50, dtype);
    check_prefill(1, 9, 2, 3, 20, dtype, true);
  }
}

TEST_CASE("kernel append_heads: watched heads and other caches are MLX's") {
  auto s = kernel_stream();
  auto supported = [&](mx::Dtype dtype, const ops::AttentionWatch& watch) {
    auto empty = mx::zeros({1, 2, 4, kDepth}, dtype);
    auto qkv = mx::zeros({1, 2, 6 * kDepth});
    return gpu::can_use_prefill_attention(
        {qkv, frequencies(), {empty, empty}, 0, watch}, s);
  };
  CHECK(supported(mx::float32, {}));
  CHECK_FALSE(supported(mx::float16, {}));
  CHECK_FALSE(supported(mx::float32, {{1}, 1, 0, 1}));
}
