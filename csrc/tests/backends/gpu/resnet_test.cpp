#include "nightingale/ops/resnet.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/backends/gpu/kernel.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Weights of a block, for the backend that is in use.
struct Block {
  int inputs, channels;
  mx::Dtype dtype = mx::float32;

  mx::array weights(mx::Shape shape, uint32_t seed) const {
    float scale = 1.0f / std::sqrt(float(shape.back() * 3));
    auto w = mx::multiply(
        noise_array(std::move(shape), seed), mx::array(scale), cpu_stream());
    auto typed = mx::astype(w, dtype, cpu_stream());
    mx::eval(typed);
    return typed;
  }
  ops::CausalConv conv(int from, uint32_t seed, mx::Stream s) const {
    return {
        weights({channels, 3, from}, seed),
        noise_array({channels}, seed + 1),
        s};
  }
  ops::LayerNorm norm(uint32_t seed) const {
    return {
        noise_array({channels}, seed),
        noise_array({channels}, seed + 1),
        1e-5f};
  }
  ops::ResnetContext context() const {
    return {noise_array({channels}, 30), norm(31)};
  }
  ops::Resnet resnet(int skip, mx::Stream s) const {
    return ops::Resnet(
        {conv(inputs, 11, s),
         norm(13),
         conv(channels, 15, s),
         norm(17),
         weights({channels, inputs}, 19),
         noise_array({channels}, 20)},
        skip);
  }
};

// By the CPU's own ops, in float32.
ops::Normed on_the_cpu(const Block& block, ops::FrameInput input, int skip) {
  auto s = cpu_stream();
  input.dtype = mx::float32;
  auto x = ops::resnet(input, block.resnet(skip, s), block.context(), s);
  mx::eval(x.sum, x.normed);
  return x;
}

void check_resnet(const Block& block, int batch, int frames, int skip) {
  auto x = noise_array({batch * frames, block.inputs - skip}, 1);
  ops::FrameInput input{x, batch, block.dtype};
  if (skip > 0) {
    input.skip = noise_array({batch * frames, skip}, 2);
  }
  auto expected = on_the_cpu(block, input, skip);
  EmulatedGpu gpu;
  auto s = kernel_stream();
  auto weights = block.resnet(skip, s);
  REQUIRE(weights.matrix);
  auto found = ops::resnet(input, weights, block.context(), s);
  CHECK(found.sum.dtype() == mx::float32);
  CHECK(found.normed.dtype() == block.dtype);
  double rounding = block.dtype == mx::float32 ? graph_tolerance(5e-6)
      : block.dtype == mx::float16             ? 5e-3
                                               : 4e-2;
  CHECK(relative_error(found.sum, values(expected.sum)) < rounding);
  CHECK(relative_error(found.normed, values(expected.normed)) < rounding);
  if (gpu::has_tiles(s)) {
    WideRows wide;
    auto same = ops::resnet(input, weights, block.context(), s);
    CHECK(same_bits(same.sum, found.sum));
    CHECK(same_bits(same.normed, found.normed));
  }
}

} // namespace

TEST_CASE("kernel resnet: any number of channels and frames") {
  for (auto [inputs, channels] :
       {std::pair(8, 8), {31, 32}, {80, 33}, {320, 256}}) {
    for (int frames : {1, 2, 3, 11}) {
      CAPTURE(channels);
      CAPTURE(frames);
      check_resnet({inputs, channels}, 2, frames, 0);
    }
  }
}

TEST_CASE("kernel resnet: part of the input in an array of its own") {
  check_resnet({64, 32}, 2, 7, 32);
  check_resnet({21, 16}, 1, 7, 9);
}

TEST_CASE("kernel resnet: half types") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    CAPTURE(dtype);
    check_resnet({64, 128, dtype}, 2, 9, 32);
    check_resnet({40, 36, dtype}, 1, 9, 0);
  }
}

TEST_CASE("kernel causal_conv and normed_conv") {
  for (mx::Dtype dtype : kFloatTypes) {
    Block block{24, 40, dtype};
    auto x = noise_array({2 * 9, 24}, 1);
    auto norm = block.norm(3);
    auto s = cpu_stream();
    auto conv = block.conv(24, 11, s);
    auto y = ops::causal_conv({x, 2, mx::float32}, conv, s);
    auto z = ops::normed_conv({x, 2, mx::float32}, conv, norm, s);
    mx::eval(y, z);
    EmulatedGpu gpu;
    conv = block.conv(24, 11, kernel_stream());
    REQUIRE(conv.matrix);
    double rounding = dtype == mx::float32 ? graph_tolerance(5e-6)
        : dtype == mx::float16             ? 3e-3
                                           : 2e-2;
    auto found = ops::causal_conv({x, 2, dtype}, conv, kernel_stream());
    CHECK(found.dtype() == dtype);
    CHECK(relative_error(found, values(y)) < rounding);
    found = ops::normed_conv({x, 2, dtype}, conv, norm, kernel_stream());
    CHECK(relative_error(found, values(z)) < rounding);
  }
}

TEST_CASE(
    "kernel tile_conv_norm and tile_resnet_sum: a block in two launches") {
  KernelLimits limits({.tiles = true});
  if (!gpu::has_tiles(kernel_stream())) {
    return; // a Mac
  }
  auto launches = [](const Block& block, int batch, int frames, int skip) {
    CAPTURE(block.inputs);
    CAPTURE(block.channels);
    CAPTURE(frames);
    long before = gpu::kernel_launches();
    check_resnet(block, batch, frames, skip);
    return (gpu::kernel_launches() - before) / 2; // it runs twice
  };
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    for (int frames : {1, 2, 3, 15, 16, 17, 40}) {
      CHECK(launches({96, 64, dtype}, 2, frames, 0) == 2);
    }
    CHECK(launches({64, 128, dtype}, 2, 9, 32) == 2);
    // An odd number of steps: the last is read where the next product's first
    // is written.
    CHECK(launches({96, 96, dtype}, 2, 17, 0) == 2);
    CHECK(launches({512, 256, dtype}, 1, 19, 256) == 2);
    CHECK(launches({320, 256, dtype}, 2, 3, 0) == 2);
  }
  // What tiles do not fill: taps, norm and sum, and two products or MLX's.
  CHECK(launches({40, 64, mx::float16}, 2, 9, 0) > 2);
  CHECK(launches({64, 48, mx::float16}, 2, 9, 0) > 2);
  CHECK(launches({64, 64, mx::float16}, 2, 9, 24) > 2);
}

TEST_CASE("kernel tile_resnet_sum: every size of a group gives the same") {
  KernelLimits limits({.tiles = true});
  if (!emulated()) {
    return;
  }
  EmulatedGpu gpu;
  auto s = kernel_stream();
  Block block{64, 128, mx::float16};
  auto weights = block.resnet(32, s);
  auto run = [&] {
    ops::FrameInput input{
        noise_array({2 * 20, 32}, 1, mx::float16), 2, mx::float16};
    input.skip = noise_array({2 * 20, 32}, 2);
    auto found = ops::resnet(input, weights, block.context(), s);
    mx::eval(found.sum, found.normed);
    return found;
  };
  auto expected = run();
  for (int most : {64, 32}) {
    KernelLimits fewer({.threads = most, .tiles = true});
    auto found = run();
    CHECK(same_bits(found.sum, expected.sum));
    CHECK(same_bits(found.normed, expected.normed));
  }
}

TEST_CASE("a resnet of too few channels for its kernels runs without") {
  Block block{6, 5};
  ops::FrameInput input{noise_array({2 * 4, 6}, 1), 2, mx::float32};
  auto expected = on_the_cpu(block, input, 0);
  EmulatedGpu gpu;
  auto weights = block.resnet(0, kernel_stream());
  CHECK_FALSE(weights.matrix);
  auto found = ops::resnet(input, weights, block.context(), kernel_stream());
  CHECK(
      relative_error(found.sum, values(expected.sum)) < graph_tolerance(5e-6));
}

TEST_CASE("kernel causal_taps: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  EmulatedGpu gpu;
  auto s = kernel_stream();
  Block block{40, 24};
  auto conv = block.conv(40, 11, s);
  ops::FrameInput input{noise_array({2 * 6, 40}, 1), 2, mx::float32};
  auto expected = ops::causal_conv(input, conv, s);
  mx::eval(expected);
  for (int most : {128, 64, 32}) {
    KernelLimits limits({.threads = most});
    CHECK(same_bits(ops::causal_conv(input, conv, s), expected));
  }
}
