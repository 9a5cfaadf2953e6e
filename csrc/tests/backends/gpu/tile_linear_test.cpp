#include "nightingale/backends/gpu/linear.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"
#include "nightingale/ops/linear.h"
#include "ops/arrays.h"
#include "ops/epilogue_reference.h"

using namespace nightingale;
using namespace nightingale::testing;
using ops::Activation;

namespace {

// Tensor cores cut sums off where others round them.
double tolerance(mx::Dtype result) {
  return result == mx::float32 ? (emulated() ? 3e-6 : 5e-5)
      : result == mx::float16  ? 1e-3
                               : 8e-3;
}

mx::array wide(const mx::array& x) {
  return mx::astype(x, mx::float32, cpu_stream());
}

// Of about unit size after a product.
mx::array weights(int rows, int columns, mx::Dtype dtype) {
  auto w = mx::multiply(
      noise_array({rows, columns}, 2),
      mx::array(1.0f / std::sqrt(float(columns))),
      cpu_stream());
  return ops::computed(mx::astype(w, dtype, cpu_stream()));
}

mx::array product_reference(const mx::array& x, const mx::array& w) {
  return reference::linear(wide(x), wide(w), {}, cpu_stream());
}

void check_linear(
    const mx::array& x,
    const mx::array& w,
    const ops::Epilogue& epilogue) {
  auto y = gpu::tile_linear(x, w, epilogue, kernel_stream());
  mx::Shape shape = x.shape();
  shape.back() = w.shape(0);
  auto dtype = epilogue.result_dtype(x);
  CHECK(y.dtype() == dtype);
  CHECK(y.shape() == shape);
  auto expected = apply_epilogue_reference(
      values(product_reference(x, w)), w.shape(0), epilogue);
  CHECK(relative_error(y, expected) < tolerance(dtype));
  WideRows wide;
  CHECK(same_bits(gpu::tile_linear(x, w, epilogue, kernel_stream()), y));
}

ops::LayerNorm norm_of(int channels) {
  return {noise_array({channels}, 5), noise_array({channels}, 6), 1e-5f};
}

} // namespace

TEST_CASE("kernel tile_linear: any number of rows") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    for (int rows : {1, 7, 8, 9, 15, 16, 17, 33}) {
      CAPTURE(rows);
      check_linear(
          noise_array({rows, 64}, 1, dtype),
          weights(64, 64, dtype),
          {.dtype = mx::float32});
    }
  }
  check_linear(
      noise_array({2, 350, 32}, 1, mx::float16),
      weights(16, 32, mx::float16),
      {});
}

TEST_CASE("kernel tile_linear: the shapes that matrices take") {
  for (auto [outputs, columns] :
       {std::pair{16, 32},
        {48, 96},
        {64, 64},
        {80, 256},
        {192, 160},
        {256, 96},
        {512, 64},
        {512, 480},
        {576, 64},
        {1024, 96},
        {1040, 32},
        {1536, 64}}) {
    CAPTURE(outputs);
    CAPTURE(columns);
    check_linear(
        noise_array({70, columns}, 1, mx::float16),
        weights(outputs, columns, mx::float16),
        {.dtype = mx::float32});
  }
}

TEST_CASE("kernel tile_linear: what follows the product") {
  mx::Shape shape{19, 48};
  auto x = noise_array({19, 64}, 1, mx::float16);
  auto w = weights(48, 64, mx::float16);
  for (mx::Dtype dtype : kFloatTypes) {
    for (auto epilogue : epilogues(shape, dtype)) {
      if (epilogue.snake) {
        CHECK_FALSE(gpu::fits_tiles(x, w, epilogue));
      } else if (dtype == mx::float32 || epilogue.residual) {
        check_linear(x, w, epilogue);
      }
    }
  }
  check_linear(
      x,
      w,
      {.bias = noise_array({48}, 3, mx::bfloat16), .dtype = mx::bfloat16});
}

TEST_CASE("kernel tile_linear: gelu of 16 bits is as exact as they are") {
  // The unit matrix as weights leaves the rows as they are.
  auto s = cpu_stream();
  auto w = mx::astype(mx::eye(64, s), mx::float16, s);
  auto x = mx::reshape(
      mx::astype(
          mx::linspace(-12.0, 12.0, 64 * 80, mx::float32, s), mx::float16, s),
      {80, 64},
      s);
  mx::eval(w, x);
  ops::Epilogue epilogue{.activation = Activation::gelu};
  auto found = values(gpu::tile_linear(x, w, epilogue, kernel_stream()));
  auto of = values(x);
  for (size_t i = 0; i < of.size(); ++i) {
    double exact = 0.5 * of[i] * std::erfc(-of[i] / std::sqrt(2.0));
    double rounding = std::max(std::abs(exact) * 0x1p-11, 0x1p-25);
    CHECK(std::abs(found[i] - exact) < 1.02 * rounding + 3e-7);
  }
}

TEST_CASE("kernel tile_linear: results are batch-invariant") {
  auto x = noise_array({70, 96}, 1, mx::float16);
  auto w = weights(1024, 96, mx::float16);
  auto all = gpu::tile_linear(x, w, {.dtype = mx::float32}, kernel_stream());
  for (int begin : {0, 15, 41, 69}) {
    auto cut = [&](const mx::array& y, int end) {
      return mx::contiguous(
          mx::slice(y, {begin, 0}, {end, y.shape(1)}, cpu_stream()),
          false,
          cpu_stream());
    };
    auto one = gpu::tile_linear(
        cut(x, begin + 1), w, {.dtype = mx::float32}, kernel_stream());
    CHECK(same_bits(one, cut(all, begin + 1)));
  }
}

TEST_CASE("kernel tile_linear: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  // Three steps: the last is read where the next patch's first is written.
  auto x = noise_array({50, 96}, 1, mx::float16);
  auto w = weights(1024, 96, mx::float16);
  auto residual = noise_array({50, 1024}, 3);
  ops::Epilogue epilogue{.residual = residual};
  auto expected = gpu::tile_linear(x, w, epilogue, kernel_stream());
  mx::eval(expected);
  for (int most : {128, 32}) {
    KernelLimits limits({.threads = most});
    CHECK(
        same_bits(gpu::tile_linear(x, w, epilogue, kernel_stream()), expected));
  }
}

TEST_CASE("kernel tile_linear: what tiles do not fill is refused") {
  auto x = noise_array({20, 64}, 1, mx::float16);
  auto refused = [&](const mx::array& x, const mx::array& w) {
    CHECK_FALSE(gpu::fits_tiles(x, w, {}));
    CHECK_THROWS_AS(gpu::tile_linear(x, w, {}, kernel_stream()), Error);
    CHECK_FALSE(gpu::fits_norm_tiles(x, w));
  };
  refused(x, weights(40, 64, mx::float16));
  refused(x, weights(48, 64, mx::bfloat16));
  refused(x, weights(48, 96, mx::float16));
  refused(noise_array({20, 40}, 1, mx::float16), weights(48, 40, mx::float16));
  refused(noise_array({20, 64}, 1), weights(48, 64, mx::float32));
  CHECK_THROWS_WITH_AS(
      gpu::tile_linear(x, weights(40, 64, mx::float16), {}, kernel_stream()),
      "tile_linear is not for x of float16 (20,64) and w of float16 (40,64)",
      Error);
  CHECK_FALSE(gpu::fits_norm_tiles(x, weights(48, 64, mx::float16)));
  CHECK_FALSE(gpu::fits_norm_tiles(x, weights(544, 64, mx::float16)));
}

TEST_CASE("kernel tile_linear_norm: a product, its residual and their norm") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    for (auto [rows, columns, outputs] :
         {std::array{1, 32, 32},
          std::array{15, 64, 96},
          std::array{16, 96, 256},
          std::array{17, 160, 256},
          std::array{40, 64, 512},
          std::array{65, 64, 32}}) {
      CAPTURE(rows);
      CAPTURE(outputs);
      auto x = noise_array({rows, columns}, 1, dtype);
      auto w = weights(outputs, columns, dtype);
      auto bias = noise_array({outputs}, 3);
      auto residual = noise_array({rows, outputs}, 4);
      auto norm = norm_of(outputs);
      auto found = gpu::tile_linear_norm(
          x, w, {bias, residual, norm, dtype}, kernel_stream());
      CHECK(found.sum.dtype() == mx::float32);
      CHECK(found.normed.dtype() == dtype);
      auto s = cpu_stream();
      auto sum = reference::linear(
          wide(x), wide(w), {.bias = bias, .residual = residual}, s);
      auto normed = reference::layer_norm(sum, norm, mx::float32, s);
      CHECK(relative_error(found.sum, values(sum)) < tolerance(mx::float32));
      CHECK(relative_error(found.normed, values(normed)) < tolerance(dtype));
      {
        WideRows wide;
        auto same = gpu::tile_linear_norm(
            x, w, {bias, residual, norm, dtype}, kernel_stream());
        CHECK(same_bits(same.sum, found.sum));
        CHECK(same_bits(same.normed, found.normed));
      }
      auto wider = gpu::tile_linear_norm(
          x, w, {bias, residual, norm, mx::float32}, kernel_stream());
      CHECK(
          relative_error(wider.normed, values(normed)) <
          2 * tolerance(mx::float32));
    }
  }
}

TEST_CASE("kernel tile_linear_norm: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  auto x = noise_array({20, 64}, 1, mx::float16);
  auto w = weights(256, 64, mx::float16);
  auto run = [&] {
    auto found = gpu::tile_linear_norm(
        x,
        w,
        {noise_array({256}, 3),
         noise_array({20, 256}, 4, mx::float16),
         norm_of(256),
         mx::float32},
        kernel_stream());
    mx::eval(found.sum, found.normed);
    return found;
  };
  auto expected = run();
  for (int most : {128, 64, 32}) {
    KernelLimits limits({.threads = most});
    auto found = run();
    CHECK(same_bits(found.sum, expected.sum));
    CHECK(same_bits(found.normed, expected.normed));
  }
}

TEST_CASE("products of many rows are tiles where a GPU is better at them") {
  EmulatedGpu gpu;
  KernelLimits limits({.tiles = true});
  auto s = kernel_stream();
  if (!gpu::has_tiles(s)) {
    return; // a Mac
  }
  auto launches = [&](mx::Dtype dtype, int rows, int outputs, int columns) {
    auto x = noise_array({rows, columns}, 1, dtype);
    auto w = weights(outputs, columns, dtype);
    long before = gpu::kernel_launches();
    auto y = ops::linear(x, w, {}, s);
    CHECK(
        relative_error(y, values(product_reference(x, w))) <
        (dtype == mx::float32 ? graph_tolerance(1e-5) : tolerance(dtype)));
    return gpu::kernel_launches() - before;
  };
  CHECK(launches(mx::float16, 9, 64, 64) == 1);
  CHECK(launches(mx::bfloat16, 9, 64, 64) == 1);
  CHECK(launches(mx::float32, 9, 64, 64) == 0);
  CHECK(launches(mx::float16, 9, 40, 64) == 0);
  CHECK(launches(mx::float16, 9, 64, 40) == 0);
  CHECK(launches(mx::float16, 3, 1040, 1024) == 0);
}
