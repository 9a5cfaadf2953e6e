#include "nightingale/ops/feed_forward.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "backends/cpu/thread_count.h"
#include "backends/gpu/emulated_gpu.h"
#include "nightingale/backends/cpu/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kWidth = 64, kChannels = 32, kHidden = 128;

ops::FeedForward block_of() {
  return {
      noise_array({kChannels, kWidth}, 2),
      noise_array({kChannels}, 3),
      {noise_array({kChannels}, 4), noise_array({kChannels}, 5), 1e-5f},
      noise_array({kHidden, kChannels}, 6),
      noise_array({kHidden}, 7),
      noise_array({kChannels, kHidden}, 8),
      noise_array({kChannels}, 9)};
}

} // namespace

TEST_CASE("feed_forward is two residual sums around a norm and a gelu") {
  auto block = block_of();
  ops::LayerNorm next{
      noise_array({kChannels}, 10), noise_array({kChannels}, 11), 1e-3f};
  for (int rows : {1, 17, 40}) {
    CAPTURE(rows);
    ops::FeedForwardInput in{
        noise_array({2, rows, kWidth}, 1),
        noise_array({2, rows, kChannels}, 12),
        mx::float32};
    auto s = cpu_stream();
    auto inner = cpu::linear(
        in.x, block.out, {.bias = block.out_b, .residual = in.residual}, s);
    auto hidden = cpu::linear(
        cpu::layer_norm(inner, block.norm, mx::float32, s),
        block.up,
        {.bias = block.up_b, .activation = ops::Activation::gelu},
        s);
    auto sum = cpu::linear(
        hidden, block.down, {.bias = block.down_b, .residual = inner}, s);
    auto normed = cpu::layer_norm(sum, next, mx::float32, s);

    CHECK(same_bits(cpu::feed_forward(in, block, s), sum));
    auto both = cpu::feed_forward_norm(in, block, next, s);
    CHECK(same_bits(both.sum, sum));
    CHECK(same_bits(both.normed, normed));
    EmulatedGpu gpu;
    both = ops::feed_forward_norm(in, block, next, kernel_stream());
    CHECK(relative_error(both.sum, values(sum)) < graph_tolerance(1e-5));
    CHECK(relative_error(both.normed, values(normed)) < graph_tolerance(1e-5));
    both.sum = ops::feed_forward(in, block, kernel_stream());
    CHECK(relative_error(both.sum, values(sum)) < graph_tolerance(1e-5));
  }
}

TEST_CASE("feed_forward in bfloat16 has the bits of its ops, on any threads") {
  auto s = cpu_stream();
  constexpr int channels = 64, hidden = 320;
  auto half = [&](const mx::Shape& shape, uint32_t seed) {
    return noise_array(shape, seed, mx::bfloat16);
  };
  for (int bits : {0, 8}) {
    auto matrix = [&](int outer, int inner, uint32_t seed) {
      ops::Matrix w = bits
          ? ops::Matrix::quantized(noise_array({outer, inner}, seed), bits, s)
          : half({outer, inner}, seed);
      w.row_bits = 8;
      return w;
    };
    ops::FeedForward block{
        matrix(channels, 128, 2),
        noise_array({channels}, 3),
        {noise_array({channels}, 4), noise_array({channels}, 5), 1e-5f},
        matrix(hidden, channels, 6),
        noise_array({hidden}, 7),
        matrix(channels, hidden, 8),
        noise_array({channels}, 9)};
    ops::LayerNorm next{
        noise_array({channels}, 10), noise_array({channels}, 11), 1e-3f};
    for (int rows : {1, 17, 64, 65, 150}) {
      CAPTURE(bits);
      CAPTURE(rows);
      ops::FeedForwardInput in{
          half({2, rows, 128}, 1),
          noise_array({2, rows, channels}, 12),
          mx::bfloat16};
      auto expected = backends::feed_forward_norm(in, block, next, s);
      for (int threads : {1, 3}) {
        ThreadCount count(threads);
        auto both = cpu::feed_forward_norm(in, block, next, s);
        CHECK(both.normed.dtype() == mx::bfloat16);
        CHECK(same_bits(both.sum, expected.sum));
        CHECK(same_bits(floats(both.normed), floats(expected.normed)));
        CHECK(same_bits(cpu::feed_forward(in, block, s), expected.sum));
      }
    }
  }
}
