#include "nightingale/ops/resnet.h"

#include <doctest/doctest.h>

#include "arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kInputs = 24, kChannels = 16;

ops::CausalConv conv_of(int inputs, uint32_t seed) {
  return {
      noise_array({kChannels, 3, inputs}, seed),
      noise_array({kChannels}, seed + 1),
      cpu_stream()};
}

ops::LayerNorm norm_of(uint32_t seed) {
  return {
      noise_array({kChannels}, seed),
      noise_array({kChannels}, seed + 1),
      1e-5f};
}

// skip: how many of the input channels are passed as FrameInput::skip
ops::Normed run(const ops::FrameInput& input, int skip) {
  ops::Resnet block(
      {conv_of(kInputs, 11),
       norm_of(13),
       conv_of(kChannels, 15),
       norm_of(17),
       noise_array({kChannels, kInputs}, 19),
       noise_array({kChannels}, 20)},
      skip);
  ops::ResnetContext context{noise_array({kChannels}, 30), norm_of(31)};
  return ops::resnet(input, block, context, cpu_stream());
}

} // namespace

TEST_CASE("resnet of channels in two arrays is that of one") {
  auto x = noise_array({2, 9, kInputs}, 1);
  auto expected = run({x, 2, mx::float32}, 0);
  CHECK(expected.sum.shape() == mx::Shape{2, 9, kChannels});
  auto columns = [&](int begin, int end) {
    return mx::slice(x, {0, 0, begin}, {2, 9, end}, cpu_stream());
  };
  for (int own : {1, 16, 23}) {
    CAPTURE(own);
    ops::FrameInput input{columns(0, own), 2, mx::float32};
    input.skip = columns(own, kInputs);
    auto found = run(input, kInputs - own);
    CHECK(relative_error(found.sum, values(expected.sum)) < 5e-6);
    CHECK(relative_error(found.normed, values(expected.normed)) < 5e-6);
  }
}

TEST_CASE("resnet takes batch rows of two axes") {
  auto x = noise_array({2, 9, kInputs}, 1);
  auto expected = run({x, 2, mx::float32}, 0);
  auto flat = mx::reshape(x, {18, kInputs}, cpu_stream());
  auto found = run({flat, 2, mx::float32}, 0);
  CHECK(same_bits(found.sum, expected.sum));
  CHECK(same_bits(found.normed, expected.normed));
}

TEST_CASE("a frame of causal_conv and normed_conv sees no later frame") {
  auto s = cpu_stream();
  auto x = noise_array({1, 40, kInputs}, 1);
  auto conv = conv_of(kInputs, 11);
  auto norm = norm_of(13);
  ops::FrameInput whole{x, 1, mx::float32};
  ops::FrameInput start{rows_of(x, 0, 17), 1, mx::float32};
  CHECK(same_bits(
      ops::causal_conv(start, conv, s),
      rows_of(ops::causal_conv(whole, conv, s), 0, 17)));
  CHECK(same_bits(
      ops::normed_conv(start, conv, norm, s),
      rows_of(ops::normed_conv(whole, conv, norm, s), 0, 17)));
}
