#include "nightingale/backends/gpu/linear.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

struct Sizes {
  int rows, width, channels, hidden; // width: of the attention
};

// Weights as they are in `dtype`, stored in `stored`.
ops::FeedForward weights(Sizes sizes, mx::Dtype dtype, mx::Dtype stored) {
  auto s = cpu_stream();
  auto matrix = [&](int rows, int columns, uint32_t seed) {
    auto scale = mx::array(1.0f / std::sqrt(float(columns)));
    auto w = mx::multiply(noise_array({rows, columns}, seed), scale, s);
    return ops::computed(mx::astype(mx::astype(w, dtype, s), stored, s));
  };
  int c = sizes.channels, f = sizes.hidden;
  return {
      matrix(c, sizes.width, 2),
      noise_array({c}, 3),
      {noise_array({c}, 4), noise_array({c}, 5), 1e-5f},
      matrix(f, c, 6),
      noise_array({f}, 7),
      matrix(c, f, 8),
      noise_array({c}, 9)};
}

ops::LayerNorm next_norm(int channels) {
  return {noise_array({channels}, 10), noise_array({channels}, 11), 1e-3f};
}

// What is between two products is rounded to their type.
double tolerance(mx::Dtype dtype) {
  return dtype == mx::float16 ? 2e-3 : 1.5e-2;
}

void check_feed_forward(Sizes sizes, mx::Dtype dtype) {
  CAPTURE(sizes.rows);
  CAPTURE(sizes.channels);
  CAPTURE(dtype);
  auto x = noise_array({sizes.rows, sizes.width}, 1, dtype);
  auto residual = noise_array({sizes.rows, sizes.channels}, 12);
  auto next = next_norm(sizes.channels);
  auto expected = ops::feed_forward_norm(
      {mx::astype(x, mx::float32, cpu_stream()), residual, mx::float32},
      weights(sizes, dtype, mx::float32),
      next,
      cpu_stream());
  auto block = weights(sizes, dtype, dtype);
  ops::FeedForwardInput in{x, residual, dtype};
  REQUIRE(gpu::fits_tile_feed_forward(in, block));
  auto s = kernel_stream();
  auto found = gpu::tile_feed_forward_norm(in, block, next, s);
  CHECK(found.sum.dtype() == mx::float32);
  CHECK(found.normed.dtype() == dtype);
  CHECK(relative_error(found.sum, values(expected.sum)) < tolerance(dtype));
  CHECK(
      relative_error(found.normed, values(expected.normed)) < tolerance(dtype));
  auto sum = gpu::tile_feed_forward(in, block, s);
  CHECK(same_bits(sum, found.sum));
  WideRows wide;
  long before = gpu::kernel_launches();
  auto by_products = gpu::tile_feed_forward_norm(in, block, next, s);
  CHECK(gpu::kernel_launches() - before == 3);
  CHECK(same_bits(by_products.sum, found.sum));
  CHECK(same_bits(by_products.normed, found.normed));
  CHECK(same_bits(gpu::tile_feed_forward(in, block, s), found.sum));
}

} // namespace

TEST_CASE("kernel tile_feed_forward: any number of rows, and sizes") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    for (int rows : {1, 15, 16, 17, 40, 64, 65}) {
      check_feed_forward({rows, 64, 32, 128}, dtype);
    }
    check_feed_forward({18, 96, 64, 64}, dtype);
    check_feed_forward({18, 64, 96, 192}, dtype);
    check_feed_forward({5, 512, 256, 1024}, dtype);
  }
}

TEST_CASE("kernel tile_feed_forward: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  Sizes sizes{20, 64, 128, 256};
  auto block = weights(sizes, mx::float16, mx::float16);
  auto run = [&] {
    auto found = gpu::tile_feed_forward_norm(
        {noise_array({20, 64}, 1, mx::float16),
         noise_array({20, 128}, 12),
         mx::float16},
        block,
        next_norm(128),
        kernel_stream());
    mx::eval(found.sum, found.normed);
    return found;
  };
  auto expected = run();
  for (int most : {64, 32}) {
    KernelLimits limits({.threads = most});
    auto found = run();
    CHECK(same_bits(found.sum, expected.sum));
    CHECK(same_bits(found.normed, expected.normed));
  }
}

TEST_CASE("kernel tile_feed_forward: by products from many rows on") {
  auto block = weights({0, 32, 32, 32}, mx::float16, mx::float16);
  auto launches = [&](int rows, mx::Dtype dtype) {
    auto x = noise_array({rows, 32}, 1, mx::float16);
    auto residual = noise_array({rows, 32}, 12, dtype);
    long before = gpu::kernel_launches();
    gpu::tile_feed_forward({x, residual, mx::float16}, block, kernel_stream());
    return gpu::kernel_launches() - before;
  };
  CHECK(launches(4095, mx::float32) == 1);
  CHECK(launches(4096, mx::float32) == 3);
  CHECK(launches(4096, mx::float16) == 1); // which keeps more of the inner sum
}

TEST_CASE("kernel tile_feed_forward: other sizes and types go by products") {
  KernelLimits limits({.tiles = true});
  EmulatedGpu gpu;
  auto s = kernel_stream();
  if (!gpu::has_tiles(s)) {
    return; // a Mac
  }
  auto launches = [&](Sizes sizes, mx::Dtype dtype) {
    auto x = noise_array({sizes.rows, sizes.width}, 1, dtype);
    auto residual = noise_array({sizes.rows, sizes.channels}, 12);
    auto block = weights(sizes, dtype, dtype);
    long before = gpu::kernel_launches();
    mx::eval(ops::feed_forward({x, residual, dtype}, block, s));
    return gpu::kernel_launches() - before;
  };
  CHECK(launches({9, 64, 32, 128}, mx::float16) == 1);
  CHECK(launches({9, 64, 64, 96}, mx::float16) == 3);
  CHECK(launches({9, 64, 288, 288}, mx::float16) == 3);
  CHECK(launches({9, 64, 32, 128}, mx::float32) > 1);
}
