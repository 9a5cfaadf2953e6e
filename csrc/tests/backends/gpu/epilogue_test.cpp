#include "nightingale/backends/gpu/epilogue.h"

#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "ops/arrays.h"
#include "ops/epilogue_reference.h"

using namespace nightingale;
using namespace nightingale::testing;
using ops::Activation;

namespace {

double tolerance(mx::Dtype result) {
  return result == mx::float32 ? 1e-6 : result == mx::float16 ? 1e-3 : 8e-3;
}

void check_epilogue(const mx::array& y, const ops::Epilogue& epilogue) {
  auto found = gpu::apply_epilogue(y, y, epilogue, kernel_stream());
  auto dtype = epilogue.result_dtype(y);
  CHECK(found.dtype() == dtype);
  CHECK(found.shape() == y.shape());
  Values expected = apply_epilogue_reference(values(y), y.shape(-1), epilogue);
  CHECK(relative_error(found, expected) < tolerance(dtype));
}

} // namespace

TEST_CASE("kernel epilogue: every activation") {
  for (auto activation :
       {Activation::silu,
        Activation::gelu,
        Activation::mish,
        Activation::elu,
        Activation::leaky_relu,
        Activation::relu}) {
    CAPTURE(static_cast<int>(activation));
    auto y = noise_array({2, 9, 64}, 1);
    check_epilogue(y, {.activation = activation});
    // Small ones too: as much of themselves as large ones.
    for (float scale : {1e-6f, 1e-3f, 0.2f, 4.0f}) {
      auto scaled = mx::multiply(y, mx::array(scale), cpu_stream());
      Values in = values(scaled);
      auto found = values(gpu::apply_epilogue(
          scaled, y, {.activation = activation}, kernel_stream()));
      for (size_t i = 0; i < in.size(); ++i) {
        double expected = activated(in[i], activation);
        double error = std::fabs(found[i] - expected);
        REQUIRE(error <= 1e-6 * std::fabs(expected) + 3e-7 * std::fabs(in[i]));
      }
    }
  }
}

TEST_CASE("kernel epilogue: bias, Snake and residual, of any width") {
  for (auto [rows, columns] :
       {std::pair{8, 1}, {1, 9}, {3, 7}, {1, 64}, {5, 260}, {700, 4}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    for (const auto& epilogue : epilogues({rows, columns})) {
      if (epilogue.activation == Activation::none) {
        check_epilogue(noise_array({rows, columns}, 1), epilogue);
      }
    }
  }
}

TEST_CASE("kernel epilogue: types of the product, its parts and the result") {
  auto bias = noise_array({12}, 2), residual = noise_array({3, 12}, 3);
  auto half = [](const mx::array& x, mx::Dtype dtype) {
    return mx::astype(x, dtype, cpu_stream());
  };
  for (mx::Dtype dtype : kFloatTypes) {
    auto y = noise_array({3, 12}, 1, dtype);
    check_epilogue(y, {.bias = half(bias, dtype)});
    check_epilogue(y, {.bias = bias, .activation = Activation::gelu});
    check_epilogue(y, {.bias = bias, .residual = residual});
    check_epilogue(
        y, {.residual = half(residual, dtype), .dtype = mx::bfloat16});
    check_epilogue(y, {.residual = residual, .dtype = mx::float16});
    check_epilogue(y, {.dtype = mx::float16});
  }
  check_epilogue(
      noise_array({3, 11}, 1, mx::bfloat16), {.bias = noise_array({11}, 2)});
}

TEST_CASE("kernel epilogue: what has nothing to do is left alone") {
  auto y = noise_array({3, 12}, 1);
  long before = gpu::kernel_launches();
  CHECK(gpu::apply_epilogue(y, y, {}, kernel_stream()).id() == y.id());
  check_epilogue(noise_array({1, 3}, 1), {.bias = noise_array({3}, 2)});
  CHECK(gpu::kernel_launches() == before);
}

TEST_CASE("kernel epilogue: large inputs, and a NaN stays one") {
  auto y = array_of(
      {90.0f, 1e30f, -90.0f, -1e4f, std::nanf(""), 1.0f, INFINITY, 0.0f},
      {1, 8});
  for (auto activation :
       {Activation::silu,
        Activation::gelu,
        Activation::mish,
        Activation::elu,
        Activation::relu}) {
    CAPTURE(static_cast<int>(activation));
    auto z = floats(
        gpu::apply_epilogue(y, y, {.activation = activation}, kernel_stream()));
    double floor = activation == Activation::elu ? -1.0 : 0.0;
    CHECK(z[0] == 90.0f);
    CHECK(z[1] == 1e30f);
    CHECK(std::fabs(z[2] - floor) < 1e-35);
    CHECK(std::fabs(z[3] - floor) < 1e-35);
    CHECK(std::isnan(z[4]));
    CHECK(std::isfinite(z[5]));
    CHECK(z[6] == INFINITY);
    CHECK(z[7] == 0.0f);
  }
}

TEST_CASE("kernel epilogue: every size of a group gives the same") {
  if (!emulated()) {
    return;
  }
  auto y = noise_array({50, 68}, 1);
  auto epilogue = epilogues({50, 68}).back();
  auto expected = gpu::apply_epilogue(y, y, epilogue, kernel_stream());
  mx::eval(expected);
  for (int most : {128, 64, 32}) {
    KernelLimits limits({.threads = most});
    CHECK(same_bits(
        gpu::apply_epilogue(y, y, epilogue, kernel_stream()), expected));
  }
}

TEST_CASE("epilogue: a residual that the kernel cannot read as it is") {
  auto s = kernel_stream();
  auto check = [&](const mx::Shape& shape,
                   const ops::FrameSpan& residual,
                   int begin) {
    CAPTURE(shape[0]);
    CAPTURE(begin);
    auto y = noise_array(shape, 1);
    auto found = gpu::apply_epilogue(
        mx::reshape(y, {-1, shape[2]}, s), shape, y, {}, residual, begin, s);
    auto rows = ops::to_array(residual, s);
    auto part = *ops::slice_frames(rows, begin, begin + shape[1], s);
    CHECK(same_bits(found, mx::add(y, part, s)));
  };
  // Fewer than 8 elements, for all rows of the batch, and more.
  check({2, 2, 3}, {std::nullopt, noise_array({1, 2, 3}, 2)}, 0);
  check({2, 4, 3}, {std::nullopt, noise_array({1, 4, 3}, 2)}, 0);
  // Frames of two rows do not lie behind each other.
  check({2, 3, 4}, {std::nullopt, noise_array({2, 5, 4}, 2)}, 1);
  check({2, 3, 4}, {noise_array({2, 2, 4}, 2), noise_array({2, 2, 4}, 3)}, 1);
  check({1, 3, 4}, {noise_array({1, 2, 4}, 2), noise_array({1, 2, 4}, 3)}, 1);
}
