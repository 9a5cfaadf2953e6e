#include "nightingale/backends/gpu/linear.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/linear.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

double tolerance(mx::Dtype result) {
  return result == mx::float32 ? 2e-6 : result == mx::float16 ? 1e-3 : 8e-3;
}

ops::LayerNorm norm_of(int channels, uint32_t seed, mx::Dtype dtype) {
  return {
      noise_array({channels}, seed, dtype),
      noise_array({channels}, seed + 1, dtype),
      1e-5f};
}

// Both results, from float32 ops on the very same numbers.
ops::Normed in_float32(
    const mx::array& x,
    const mx::array& bias,
    const mx::array& residual,
    const ops::LayerNorm& norm) {
  auto s = cpu_stream();
  auto wide = [&](const mx::array& a) { return mx::astype(a, mx::float32, s); };
  auto sum = mx::add(wide(residual), mx::add(wide(x), wide(bias), s), s);
  auto normed = reference::layer_norm(
      sum, {wide(norm.w), wide(norm.b), norm.eps}, mx::float32, s);
  return {sum, normed};
}

void check_add_norm(
    const mx::array& x,
    const mx::array& bias,
    const mx::array& residual,
    const ops::LayerNorm& norm,
    mx::Dtype dtype) {
  auto found = gpu::add_norm(x, {bias, residual, norm, dtype}, kernel_stream());
  auto expected = in_float32(x, bias, residual, norm);
  CHECK(found.sum.dtype() == residual.dtype());
  CHECK(found.normed.dtype() == dtype);
  CHECK(found.normed.shape() == residual.shape());
  CHECK(
      relative_error(found.sum, values(expected.sum)) <
      tolerance(residual.dtype()));
  CHECK(
      relative_error(found.normed, values(expected.normed)) < tolerance(dtype));
}

} // namespace

TEST_CASE("kernel add_norm: any width and number of rows") {
  for (int channels : {8, 31, 32, 64, 80, 256, 512, 515}) {
    for (int rows : {1, 7}) {
      CAPTURE(channels);
      CAPTURE(rows);
      check_add_norm(
          noise_array({rows, channels}, 1),
          noise_array({channels}, 2),
          noise_array({rows, channels}, 3),
          norm_of(channels, 4, mx::float32),
          mx::float32);
    }
  }
}

TEST_CASE("kernel add_norm: types of the product, its parts and the results") {
  for (int channels : {35, 128}) { // alone, and in fours
    auto norm = norm_of(channels, 4, mx::float32);
    auto bias = noise_array({channels}, 2);
    for (mx::Dtype from : {mx::float16, mx::bfloat16}) {
      auto x = noise_array({3, channels}, 1, from);
      check_add_norm(x, bias, noise_array({3, channels}, 3), norm, from);
      check_add_norm(
          noise_array({3, channels}, 1, from),
          noise_array({channels}, 2, from),
          noise_array({3, channels}, 3, from),
          norm_of(channels, 4, from),
          from);
    }
  }
}

TEST_CASE("kernel add_norm: a small signal on a large offset, and silence") {
  auto numbers = noise(256, 1);
  for (float& x : numbers) {
    x += 1000.0f;
  }
  auto zeros = mx::zeros({1, 256}, mx::float32, cpu_stream());
  auto bias = mx::zeros({256}, mx::float32, cpu_stream());
  auto norm = norm_of(256, 4, mx::float32);
  auto x = array_of(numbers, {1, 256});
  auto found =
      gpu::add_norm(x, {bias, zeros, norm, mx::float32}, kernel_stream());
  // A float32 mean of 1000 is right to 6e-5, next to a deviation of 1.
  auto expected = values(in_float32(x, bias, zeros, norm).normed);
  CHECK(relative_error(found.normed, expected) < 2e-4);
  found =
      gpu::add_norm(zeros, {bias, zeros, norm, mx::float32}, kernel_stream());
  CHECK(values(found.normed) == values(norm.b));
}

TEST_CASE("kernel add_norm: views are read as what they show") {
  auto bias = noise_array({20}, 2);
  auto norm = norm_of(20, 4, mx::float32);
  auto residual = noise_array({6, 20}, 3);
  check_views(noise_array({6, 20}, 1), [&](auto& x) {
    return gpu::add_norm(
               x, {bias, residual, norm, mx::float32}, kernel_stream())
        .normed;
  });
}

TEST_CASE("linear_add_norm is a linear with a residual, and its norm") {
  EmulatedGpu gpu;
  auto s = kernel_stream();
  for (int channels : {4, 48}) { // 4: too few for the kernel
    CAPTURE(channels);
    auto x = noise_array({9, 24}, 1), w = noise_array({channels, 24}, 2);
    auto bias = noise_array({channels}, 3);
    auto residual = noise_array({9, channels}, 4);
    auto norm = norm_of(channels, 5, mx::float32);
    auto found =
        ops::linear_add_norm(x, w, {bias, residual, norm, mx::float32}, s);
    auto product = mx::matmul(x, mx::transpose(w, cpu_stream()), cpu_stream());
    auto expected = in_float32(product, bias, residual, norm);
    CHECK(
        relative_error(found.sum, values(expected.sum)) <
        graph_tolerance(2e-6));
    CHECK(
        relative_error(found.normed, values(expected.normed)) <
        graph_tolerance(5e-6));
  }
}
