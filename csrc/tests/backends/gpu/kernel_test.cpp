#include "nightingale/backends/gpu/kernel.h"

#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/error.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kBiased = 1 << 24; // in epilogue.metal

// y + bias, a launch whose constants do not depend on the sizes. test: makes it
// an instance of its own.
gpu::Launch add_bias(const mx::array& y, const mx::array& bias, int test) {
  int columns = bias.size(), size = y.size();
  auto extent = gpu::numbers({columns | kBiased, size});
  return {
      .kernel = "epilogue",
      .inputs = {y, bias, y, y, y, extent, extent},
      .outputs = {{y.shape(), mx::float32}},
      .constants = {{"ACTIVATION", 0}, {"WIDTH", 1}, {"TEST", test}},
      .threads = {256, 64, 32}};
}

} // namespace

TEST_CASE("launch: an input without dimensions is refused") {
  auto y = noise_array({4, 8}, 1);
  auto launch = add_bias(y, mx::array(0.5f), 1);
  CHECK_THROWS_WITH_AS(
      gpu::launch_one(launch, kernel_stream()),
      "epilogue: input 1 has no dimensions; expected an array of one element",
      Error);
  launch.inputs[1] = gpu::numbers({0.5f});
  auto sum = gpu::launch_one(launch, kernel_stream());
  CHECK(same_bits(sum, mx::add(y, mx::array(0.5f), kernel_stream())));
}

TEST_CASE("launch: group sizes are tried anew for inputs in constant memory") {
  auto y = noise_array({24, 6}, 1);
  auto first_launches = [&](int columns) {
    long before = gpu::first_launches();
    auto launch = add_bias(y, noise_array({columns}, 2), 2);
    mx::eval(gpu::launch_one(launch, kernel_stream()));
    return gpu::first_launches() - before;
  };
  CHECK(first_launches(9) == 1);
  CHECK(first_launches(12) == 0);
  CHECK(first_launches(6) == 1);
  CHECK(first_launches(4) == 0);
}
