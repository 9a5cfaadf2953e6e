#include "nightingale/backends/gpu/prefill_attention.h"

#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kDepth = 64;

void check(
    int batch,
    int length,
    int heads,
    int past,
    int capacity,
    mx::Dtype dtype) {
  CAPTURE(batch);
  CAPTURE(length);
  CAPTURE(past);
  CAPTURE(dtype);
  auto s = kernel_stream(), cpu = cpu_stream();
  int hidden = heads * kDepth;
  auto frequencies = ops::rotary_frequencies(kDepth, ops::RotaryScaling{});
  auto qkv = noise_array({batch, length, 3 * hidden}, 1, dtype);
  auto residual = noise_array({batch, length, hidden}, 2, dtype);
  auto w = noise_array({hidden, hidden}, 3, dtype);
  mx::Shape shape{batch, heads, capacity, kDepth};
  auto keys = noise_array(shape, 4, dtype);
  auto values_ = noise_array(shape, 5, dtype);
  auto as_float = [&](const mx::array& x) {
    return mx::contiguous(mx::astype(x, mx::float32, cpu), false, cpu);
  };
  auto twin = reference::self_attention(
      as_float(qkv),
      frequencies,
      as_float(keys),
      as_float(values_),
      past,
      {},
      cpu);
  auto expected = reference::linear(
      twin.out, as_float(w), {.residual = as_float(residual)}, cpu);
  mx::eval(expected, twin.keys, twin.values);

  ops::LayerCache cache{keys, values_};
  REQUIRE(gpu::can_use_prefill_attention(qkv, cache, {}, s));
  auto actual =
      gpu::prefill_attention(qkv, frequencies, cache, past, w, residual, s);
  mx::eval(actual.x);
  double tolerance = dtype == mx::float32 ? graph_tolerance(5e-6)
      : dtype == mx::float16              ? 5e-3
                                          : 4e-2;
  CHECK(relative_error(actual.x, values(expected)) < tolerance);
  CHECK(relative_error(actual.cache.keys, values(twin.keys)) < tolerance);
  CHECK(relative_error(actual.cache.values, values(twin.values)) < tolerance);
}

} // namespace

TEST_CASE("kernel append_heads: any number of positions, written in place") {
  for (mx::Dtype dtype : kFloatTypes) {
    check(1, 1, 1, 0, 4, dtype);
    check(2, 5, 2, 0, 5, dtype);
    check(2, 37, 3, 11, 50, dtype);
  }
}

TEST_CASE("kernel append_heads: watched heads and other caches are MLX's") {
  auto s = kernel_stream();
  auto cache = [](mx::Dtype dtype) {
    auto empty = mx::zeros({1, 2, 4, kDepth}, dtype);
    return ops::LayerCache{empty, empty};
  };
  auto qkv = mx::zeros({1, 2, 6 * kDepth});
  ops::AttentionWatch watch{{1}, 1, 0, 1};
  CHECK(gpu::can_use_prefill_attention(qkv, cache(mx::float32), {}, s));
  CHECK_FALSE(gpu::can_use_prefill_attention(qkv, cache(mx::float16), {}, s));
  CHECK_FALSE(
      gpu::can_use_prefill_attention(qkv, cache(mx::float32), watch, s));
}
