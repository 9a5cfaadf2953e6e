#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr float kEps = 1e-5f;

struct Weights {
  ops::Matrix stored;
  mx::array floats; // what is stored, as float32
};

// [rows, columns] in every form the kernels read.
std::vector<Weights> all_weights(int rows, int columns) {
  std::vector<Weights> all;
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    auto w = noise_array({rows, columns}, 2, dtype);
    all.push_back({w, mx::astype(w, mx::float32, s)});
  }
  if (columns % 64 == 0) {
    for (int bits : {8, 4}) {
      auto w = noise_array({rows, columns}, 2, mx::float16);
      auto quantized = quantized_for_kernels(w, bits);
      all.push_back({quantized, quantized.dequantized(mx::float32, s)});
    }
  }
  return all;
}

// Sums are taken in float32, in another order than the reference's.
double tolerance(mx::Dtype result) {
  return result == mx::float32 ? 5e-6 : result == mx::float16 ? 1e-3 : 8e-3;
}

mx::array normed(const mx::array& x, const mx::array& norm) {
  auto s = cpu_stream();
  return reference::rms_norm(mx::astype(x, mx::float32, s), {norm, kEps}, s);
}

} // namespace

TEST_CASE("kernel gemv: a norm and a product of one or two rows") {
  auto s = kernel_stream();
  for (auto [columns, outputs] :
       {std::pair{8, 1}, {64, 30}, {192, 9}, {1024, 17}, {4096, 5}}) {
    CAPTURE(columns);
    CAPTURE(outputs);
    auto norm = noise_array({columns}, 4);
    for (const auto& w : all_weights(outputs, columns)) {
      CAPTURE(w.stored.bits);
      for (int rows : {1, 2}) {
        for (mx::Dtype dtype : kFloatTypes) {
          if (dtype != mx::float32 && (rows == 1 || columns > 200)) {
            continue; // types and sizes are told apart elsewhere
          }
          auto x = noise_array({rows, 1, columns}, 3, dtype);
          auto y = gpu::norm_linear(x, {norm, kEps}, w.stored, {}, s);
          auto expected =
              reference::linear(normed(x, norm), w.floats, {}, cpu_stream());
          CHECK(y.dtype() == dtype);
          CHECK(y.shape() == mx::Shape{rows, 1, outputs});
          CHECK(relative_error(y, values(expected)) < tolerance(dtype));
        }
      }
    }
  }
}

TEST_CASE("kernel gemv: a layer norm, a product, a bias and an activation") {
  auto s = kernel_stream();
  auto cpu = cpu_stream();
  for (auto [columns, outputs] : {std::pair{8, 7}, {64, 30}, {1024, 9}}) {
    CAPTURE(columns);
    auto gain = noise_array({columns}, 4), shift = noise_array({columns}, 5);
    ops::Norm norm{gain, kEps, shift};
    for (const auto& w : all_weights(outputs, columns)) {
      CAPTURE(w.stored.bits);
      if (columns != 64 && w.stored.w.dtype() != mx::float32) {
        continue; // types are told apart there
      }
      // Rows and parts that are there or not, in turns.
      int rows = w.stored.bits == 8 || columns == 8 ? 1 : 2;
      ops::Epilogue epilogue{.bias = noise_array({outputs}, 6)};
      if (columns == 64) {
        epilogue.activation = ops::Activation::gelu_tanh;
      }
      // A mean that sums of squares alone would lose.
      auto x =
          mx::add(noise_array({rows, 1, columns}, 3), mx::array(40.0f), cpu);
      auto y = gpu::norm_linear(x, norm, w.stored, epilogue, s);
      auto expected = reference::linear(
          reference::apply_norm(x, norm, cpu), w.floats, epilogue, cpu);
      CHECK(y.shape() == mx::Shape{rows, 1, outputs});
      CHECK(relative_error(y, values(expected)) < 1e-4);
    }
  }
}

TEST_CASE("kernel gemv: gate and up become one") {
  auto s = kernel_stream();
  for (auto [columns, ffn] : {std::pair{8, 1}, {64, 30}, {1024, 9}}) {
    CAPTURE(columns);
    auto norm = noise_array({columns}, 4, mx::float16);
    auto x = noise_array({2, 1, columns}, 3);
    for (const auto& w : all_weights(2 * ffn, columns)) {
      CAPTURE(w.stored.bits);
      auto y = gpu::norm_swiglu(x, {norm, kEps}, w.stored, s);
      auto cpu = cpu_stream();
      auto expected = reference::swiglu(
          reference::linear(
              normed(x, mx::astype(norm, mx::float32, cpu)), w.floats, {}, cpu),
          cpu);
      CHECK(y.shape() == mx::Shape{2, 1, ffn});
      CHECK(relative_error(y, values(expected)) < tolerance(mx::float32));
    }
  }
}

TEST_CASE("kernel gemv: a product, with and without a residual") {
  auto s = kernel_stream();
  for (auto [columns, outputs] :
       {std::pair{8, 1}, {64, 30}, {192, 9}, {1024, 17}, {4096, 6}}) {
    CAPTURE(columns);
    CAPTURE(outputs);
    for (const auto& w : all_weights(outputs, columns)) {
      CAPTURE(w.stored.bits);
      for (int rows : {1, 2}) {
        auto dtype = rows == 1
            ? w.stored.bits ? mx::float16 : w.stored.w.dtype()
            : mx::float32;
        auto x = noise_array({rows, 1, columns}, 3, dtype);
        auto residual = noise_array({rows, 1, outputs}, 5, dtype);
        ops::Epilogue epilogue;
        if (rows == 2) {
          epilogue.residual = residual;
        }
        auto y = gpu::linear(x, w.stored, epilogue, s);
        auto expected = reference::linear(
            mx::astype(x, mx::float32, cpu_stream()),
            w.floats,
            epilogue,
            cpu_stream());
        CHECK(y.dtype() == dtype);
        CHECK(relative_error(y, values(expected)) < tolerance(dtype));
      }
    }
  }
}

TEST_CASE("kernel gemv: the second row does not change the first") {
  auto s = kernel_stream();
  auto w = noise_array({24, 1024}, 2, mx::float16);
  auto both = noise_array({2, 1, 1024}, 3);
  auto one = mx::slice(both, {0, 0, 0}, {1, 1, 1024}, cpu_stream());
  auto y = gpu::linear(both, w, {}, s);
  auto first = mx::slice(y, {0, 0, 0}, {1, 1, 24}, s);
  CHECK(same_bits(gpu::linear(one, w, {}, s), first));
}

namespace {

mx::array rows_of(const mx::array& x, int begin, int count) {
  auto s = cpu_stream();
  mx::Shape from{begin, 0, 0}, to{begin + count, 1, x.shape(2)};
  return mx::contiguous(mx::slice(x, from, to, s), false, s);
}

// Of `sequences`, `each` rows each: all at once, and one by one.
void check_sequences(
    const ops::Matrix& w,
    gpu::GemvOptions options,
    int sequences,
    int each) {
  CAPTURE(w.bits);
  CAPTURE(sequences);
  CAPTURE(each);
  auto s = kernel_stream();
  int rows = sequences * each;
  auto x = noise_array({rows, 1, w.columns()}, sequences);
  auto residual = options.epilogue.residual;
  if (residual) {
    options.epilogue.residual = rows_of(*residual, 0, rows);
  }
  options.sequences = sequences;
  auto y = gpu::gemv(x, w, options, s);
  options.sequences = 1;
  for (int i = 0; i < rows; i += each) {
    if (residual) {
      options.epilogue.residual = rows_of(*residual, i, each);
    }
    auto alone = gpu::gemv(rows_of(x, i, each), w, options, s);
    CHECK(same_bits(rows_of(y, i, each), alone));
  }
}

} // namespace

TEST_CASE("kernel gemv: rows of several sequences have the bits of one") {
  KernelLimits limits({});
  for (auto [columns, outputs] :
       {std::pair{192, 10}, {1024, 2056}, {4096, 4}}) {
    CAPTURE(columns);
    auto gain = noise_array({columns}, 4), shift = noise_array({columns}, 5);
    ops::Norm root{gain, kEps}, layer{gain, kEps, shift};
    gpu::GemvOptions gated{.norm = &root, .swiglu = true};
    gpu::GemvOptions normed{.norm = &layer};
    gpu::GemvOptions added{
        .epilogue = {
            .bias = noise_array({outputs}, 6),
            .residual = noise_array({16, 1, outputs}, 7)}};
    for (const auto& [w, floats] : all_weights(outputs, columns)) {
      if (outputs > 2000) { // of which a group makes more products
        if (w.w.dtype() == mx::float16 || w.bits == 8) {
          check_sequences(w, gated, 5, 2);
        }
        continue;
      }
      for (auto [sequences, each] : {std::pair{2, 2}, {5, 2}, {3, 1}, {8, 1}}) {
        check_sequences(w, gated, sequences, each);
        check_sequences(w, normed, sequences, each);
        check_sequences(w, added, sequences, each);
      }
      check_sequences(w, added, 8, 2);
    }
  }
}

TEST_CASE("kernel gemv: rows of several sequences take the best size or none") {
  if (!emulated()) {
    return;
  }
  auto two = noise_array({2, 1, 1024}, 3), four = noise_array({4, 1, 1024}, 3);
  auto w = noise_array({16, 1024}, 2, mx::float16);
  auto s = kernel_stream();
  KernelLimits limits({.threads = 64});
  CHECK_NOTHROW(gpu::gemv(two, w, {}, s)); // which takes another size
  for (const auto& x : {four, four, two}) {
    CHECK_THROWS_WITH_AS(
        gpu::gemv(x, w, {.sequences = 2}, s),
        doctest::Contains("this GPU cannot run the kernel gemv"),
        nightingale::Error);
  }
}

TEST_CASE("kernel gemv: a GPU that refuses large groups gets smaller ones") {
  if (!emulated()) {
    return;
  }
  auto x = noise_array({2, 1, 1024}, 3);
  auto norm = noise_array({1024}, 4);
  auto w = noise_array({16, 1024}, 2, mx::bfloat16);
  auto s = kernel_stream();
  auto y = gpu::linear(x, w, {}, s);
  auto z = gpu::norm_linear(x, {norm, kEps}, w, {}, s);
  for (int most : {64, 32}) {
    KernelLimits limits({.threads = most});
    CHECK(relative_error(gpu::linear(x, w, {}, s), values(y)) < 1e-6);
    CHECK(
        relative_error(gpu::norm_linear(x, {norm, kEps}, w, {}, s), values(z)) <
        1e-6);
  }
  KernelLimits limits({.threads = 16});
  CHECK_THROWS_WITH_AS(
      gpu::linear(x, w, {}, s),
      doctest::Contains("this GPU cannot run the kernel gemv"),
      nightingale::Error);
}

TEST_CASE("kernel swiglu: many rows of gate and up") {
  auto s = kernel_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (auto [rows, columns] : {std::pair{3, 1}, {4, 40}, {3, 300}}) {
      CAPTURE(columns);
      auto x = noise_array({1, rows, 8}, 1, dtype);
      auto norm = noise_array({8}, 2, dtype);
      auto w = noise_array({2 * columns, 8}, 3, dtype);
      auto cpu = cpu_stream();
      auto as_float = [&](const mx::array& a) {
        return mx::astype(a, mx::float32, cpu);
      };
      auto product =
          reference::linear(normed(x, as_float(norm)), as_float(w), {}, cpu);
      auto y = gpu::norm_swiglu(x, {norm, kEps}, w, s);
      CHECK(y.shape() == mx::Shape{1, rows, columns});
      CHECK(
          relative_error(y, values(reference::swiglu(product, cpu))) <
          graph_tolerance(4 * tolerance(dtype)));
    }
  }
}
