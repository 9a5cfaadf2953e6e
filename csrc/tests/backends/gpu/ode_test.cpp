#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

ops::OdeState state_of(int batch, int frames, int width, mx::Dtype dtype) {
  ops::OdeState state{
      noise_array({1, frames, 80}, 1),
      noise_array({batch, frames, width}, 2, dtype)};
  return state;
}

} // namespace

TEST_CASE("kernel euler_step: in place, with and without guidance") {
  auto s = kernel_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int batch : {1, 2}) {
      for (int frames : {1, 9}) {
        CAPTURE(dtype);
        CAPTURE(batch);
        CAPTURE(frames);
        auto velocity = noise_array({batch, frames, 80}, 3);
        auto before = state_of(batch, frames, 320, dtype);
        auto expected =
            reference::euler_step(before, velocity, {0.7f, 0.1f}, cpu_stream());
        mx::eval(expected.x, expected.input);

        auto state = state_of(batch, frames, 320, dtype);
        mx::eval(state.x, state.input);
        auto next = gpu::euler_step(state, velocity, {0.7f, 0.1f}, s);
        REQUIRE(next.written);
        mx::eval(*next.written);
        CHECK(next.x.id() == state.x.id());
        CHECK(next.input.id() == state.input.id());
        CHECK(relative_error(next.x, values(expected.x)) < 1e-6);
        double rounding = dtype == mx::float32 ? 1e-6
            : dtype == mx::float16             ? 1e-3
                                               : 8e-3;
        CHECK(relative_error(next.input, values(expected.input)) < rounding);
        // Columns that are not x's stay as they were.
        auto kept = [&](const mx::array& a) {
          return values(
              mx::slice(a, {0, 0, 80}, {batch, frames, 320}, cpu_stream()));
        };
        CHECK(kept(next.input) == kept(before.input));
      }
    }
  }
}

TEST_CASE("many Euler steps that were never waited for are all taken") {
  EmulatedGpu gpu;
  auto s = kernel_stream();
  auto state = state_of(2, 50, 96, mx::float16);
  mx::eval(state.x, state.input);
  auto expected = state_of(2, 50, 96, mx::float16);
  for (int i = 0; i < 40; ++i) {
    auto velocity = noise_array({2, 50, 80}, 10 + i);
    state = ops::euler_step(state, velocity, {0.7f, 0.05f}, s);
    expected =
        reference::euler_step(expected, velocity, {0.7f, 0.05f}, cpu_stream());
  }
  auto found = ops::solution(state);
  CHECK(relative_error(found, values(expected.x)) < 1e-5);
}

TEST_CASE("kernel euler_step: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  auto velocity = noise_array({2, 5, 80}, 3);
  auto step = [&] {
    auto state = state_of(2, 5, 96, mx::float32);
    mx::eval(state.x, state.input);
    return gpu::euler_step(state, velocity, {0.7f, 0.1f}, kernel_stream());
  };
  auto expected = step();
  for (int most : {64, 32}) {
    KernelLimits limits({.threads = most});
    auto found = step();
    CHECK(same_bits(found.x, expected.x));
    CHECK(same_bits(found.input, expected.input));
  }
}
