#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("kernel leaky_relu: any slope, size and type") {
  for (float slope : {0.01f, 0.1f}) {
    for (int size : {1, 7, 8, 9, 1023, 4100}) {
      CAPTURE(slope);
      CAPTURE(size);
      auto x = noise_array({size}, 1);
      auto y = gpu::leaky_relu(x, slope, kernel_stream());
      CHECK(same_bits(y, reference::leaky_relu(x, slope, cpu_stream())));
    }
  }
  auto half = noise_array({3, 20}, 1, mx::bfloat16);
  auto y = gpu::leaky_relu(half, 0.1f, kernel_stream());
  CHECK(y.dtype() == mx::bfloat16);
  CHECK(
      relative_error(y, values(cpu::leaky_relu(half, 0.1f, cpu_stream()))) <
      4e-3);
}

TEST_CASE("activations by the kernel epilogue") {
  auto x = noise_array({3, 4, 12}, 1);
  auto alpha = array_of(std::vector<float>(12, 0.7f), {12});
  auto s = kernel_stream();
  for (auto activation : {ops::Activation::none, ops::Activation::elu}) {
    auto y = gpu::activate(x, activation, s);
    auto expected = reference::activate(x, activation, cpu_stream());
    CHECK(relative_error(y, values(expected)) < 1e-6);
  }
  auto y = gpu::snake(x, alpha, s);
  CHECK(
      relative_error(y, values(reference::snake(x, alpha, cpu_stream()))) <
      1e-6);
  CHECK(y.shape() == x.shape());
}
