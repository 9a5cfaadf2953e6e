#include "nightingale/ops/frame_attention.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/backends/gpu/attention.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// By the CPU's own ops, in float32.
Values attention_reference(const mx::array& qkv, int batch, int heads) {
  auto s = cpu_stream();
  auto wide = mx::astype(qkv, mx::float32, s);
  return values(ops::frame_attention(wide, batch, heads, s));
}

double tolerance(mx::Dtype dtype) {
  return dtype == mx::float32 ? graph_tolerance(5e-6)
      : dtype == mx::float16  ? 3e-3
                              : 2e-2;
}

using Way = decltype(&gpu::fused_attention);

void check_way(Way run, const mx::array& qkv, int batch, int heads) {
  mx::Dtype dtype = qkv.dtype();
  int width = qkv.shape(-1) / 3, frames = qkv.size() / qkv.shape(-1);
  auto found = run(qkv, batch, heads, kernel_stream());
  CHECK(found.dtype() == dtype);
  CHECK(found.shape() == mx::Shape{frames, width});
  auto expected = attention_reference(qkv, batch, heads);
  CHECK(relative_error(found, expected) < tolerance(dtype));
}

void check_attention(const mx::array& qkv, int batch, int heads) {
  std::vector<Way> ways{gpu::fused_attention, gpu::attention_by_products};
  if (gpu::fits_tile_attention(qkv, heads)) {
    ways.push_back(gpu::tile_attention);
  }
  for (auto way : ways) {
    check_way(way, qkv, batch, heads);
  }
}

} // namespace

TEST_CASE("kernel frame_attention: every way of it, of any shape") {
  for (auto [batch, heads, frames, depth] :
       {std::array{1, 1, 1, 64},
        std::array{2, 2, 17, 64},
        std::array{2, 3, 5, 8},
        std::array{1, 2, 70, 32}}) {
    CAPTURE(frames);
    check_attention(
        noise_array({batch * frames, 3 * heads * depth}, 1), batch, heads);
  }
}

TEST_CASE("kernel frame_attention: every way of it, of half types") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    check_attention(noise_array({2 * 17, 3 * 2 * 64}, 1, dtype), 2, 2);
    check_attention(noise_array({2, 17, 3 * 2 * 64}, 1, dtype), 2, 2);
  }
}

TEST_CASE("kernel tile_attention: any number of frames, heads and batch rows") {
  for (auto [batch, heads, frames, depth] :
       {std::array{1, 1, 1, 64},
        std::array{2, 1, 16, 32},
        std::array{1, 3, 31, 64},
        std::array{2, 2, 32, 32},
        std::array{1, 1, 33, 64},
        std::array{2, 1, 65, 64},
        std::array{1, 1, 150, 32}}) {
    CAPTURE(frames);
    CAPTURE(depth);
    for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
      mx::Shape shape{batch * frames, 3 * heads * depth};
      check_way(
          gpu::tile_attention, noise_array(shape, 1, dtype), batch, heads);
    }
  }
}

TEST_CASE("kernel tile_attention: scores that overwhelm those before them") {
  // Queries and keys of a size that puts nearly all weight on one frame.
  auto s = cpu_stream();
  auto qkv = noise_array({70, 3 * 64}, 1);
  auto gain = mx::concatenate(
      {mx::full({2 * 64}, 6.0f, s), mx::full({64}, 1.0f, s)}, 0, s);
  auto loud = mx::astype(mx::multiply(qkv, gain, s), mx::float16, s);
  check_way(gpu::tile_attention, loud, 1, 1);
}

TEST_CASE("kernel tile_attention: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  auto qkv = noise_array({2 * 70, 3 * 2 * 64}, 1, mx::float16);
  auto expected = gpu::tile_attention(qkv, 2, 2, kernel_stream());
  mx::eval(expected);
  for (int most : {64, 32}) {
    KernelLimits limits({.threads = most});
    auto found = gpu::tile_attention(qkv, 2, 2, kernel_stream());
    CHECK(same_bits(found, expected));
  }
}

TEST_CASE("kernel tile_attention: what it is not for is refused") {
  auto refused = [](const mx::array& qkv, int heads) {
    CHECK_FALSE(gpu::fits_tile_attention(qkv, heads));
    CHECK_THROWS_AS(gpu::tile_attention(qkv, 1, heads, kernel_stream()), Error);
  };
  refused(noise_array({5, 3 * 64}, 1), 1);
  refused(noise_array({5, 3 * 64}, 1, mx::float16), 4);
  refused(noise_array({5, 3 * 128}, 1, mx::float16), 1);
}

TEST_CASE("kernel relative_frame_attention: any length and type") {
  constexpr int heads = 2, width = 2 * 64;
  for (mx::Dtype dtype : kFloatTypes) {
    for (int length : {1, 2, 5, 33, 40}) {
      CAPTURE(dtype);
      CAPTURE(length);
      auto qkv = noise_array({length, 3 * width}, 1, dtype);
      auto distance = noise_array({2 * length - 1, width}, 2, dtype);
      auto w = mx::astype(
          mx::multiply(
              noise_array({3 * width, width}, 3),
              mx::array(0.1f),
              cpu_stream()),
          dtype,
          cpu_stream());
      auto content = noise_array({width}, 4, dtype);
      auto position = noise_array({width}, 5, dtype);
      auto run = [&](mx::Stream s, bool widen) {
        auto in = [&](const mx::array& x) {
          return widen ? mx::astype(x, mx::float32, cpu_stream()) : x;
        };
        auto layers =
            ops::project_positions(in(distance), {in(w), 3, heads}, s);
        REQUIRE(layers.size() == 3);
        auto y = ops::relative_frame_attention(
            in(qkv), {layers[1], in(content), in(position)}, heads, s);
        mx::eval(y);
        return y;
      };
      auto expected = run(cpu_stream(), true);
      EmulatedGpu gpu;
      auto found = run(kernel_stream(), false);
      CHECK(found.dtype() == dtype);
      CHECK(relative_error(found, values(expected)) < tolerance(dtype));
    }
  }
}

TEST_CASE("kernel split_heads and merge_heads: every size of a group") {
  if (!emulated()) {
    return;
  }
  auto qkv = noise_array({2 * 3, 3 * 2 * 48}, 1);
  auto s = kernel_stream();
  auto expected = gpu::attention_by_products(qkv, 2, 2, s);
  mx::eval(expected);
  for (int most : {64, 32}) {
    KernelLimits limits({.threads = most});
    auto found = gpu::attention_by_products(qkv, 2, 2, s);
    CHECK(same_bits(found, expected));
  }
}
