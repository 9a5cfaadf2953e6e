#include "nightingale/ops/linear.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "epilogue_reference.h"
#include "linear_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

struct Sizes {
  int rows, inner, outer;
};

void check_linear(Sizes n, mx::Dtype dtype, double tolerance = 2e-6) {
  CAPTURE(n.rows);
  CAPTURE(n.inner);
  CAPTURE(n.outer);
  auto x = noise_array({1, n.rows, n.inner}, 1);
  auto w = noise_array({n.outer, n.inner}, 2, dtype);
  mx::Shape shape{1, n.rows, n.outer};
  Values sums = linear_reference(x, w);
  int index = 0;
  for (const auto& epilogue : epilogues(shape)) {
    CAPTURE(index++);
    Values expected = apply_epilogue_reference(sums, n.outer, epilogue);
    auto y = cpu::linear(x, w, epilogue, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(y.shape() == shape);
    CHECK(relative_error(y, expected) < tolerance);
    auto graph = reference::linear(x, w, epilogue, graph_stream());
    CHECK(relative_error(graph, expected) < graph_tolerance(tolerance));
  }
}

} // namespace

TEST_CASE("linear of any number of rows, with every epilogue") {
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 3, 5, 16, 17, 100, 300}) {
      check_linear({rows, 64, 48}, dtype);
    }
  }
}

TEST_CASE("linear of sizes that no vector or tile divides") {
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 3, 5, 17, 70}) {
      check_linear({rows, 1, 1}, dtype);
      check_linear({rows, 7, 3}, dtype);
      check_linear({rows, 133, 33}, dtype);
      check_linear({rows, 17, 523}, dtype);
    }
  }
}

TEST_CASE("linear whose packed weights are used in several parts") {
  check_linear({40, 2100, 300}, mx::float32, 5e-6);
}

TEST_CASE("linear of no rows gives no rows") {
  auto x = mx::zeros({0, 8}, mx::float32, cpu_stream());
  auto y = ops::linear(x, noise_array({5, 8}, 1), {}, cpu_stream());
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{0, 5});
}

TEST_CASE("linear gives the type of its residual, or else of its input") {
  for (int rows : {3, 40}) {
    for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
      auto x = noise_array({rows, 40}, 1, dtype);
      auto w = noise_array({9, 40}, 2, dtype);
      for (mx::Dtype result : {dtype, mx::float32}) {
        ops::Epilogue epilogue{.bias = noise_array({9}, 3)};
        if (result != dtype) {
          epilogue.residual = noise_array({rows, 9}, 4, result);
        }
        Values expected =
            apply_epilogue_reference(linear_reference(x, w), 9, epilogue);
        auto y = cpu::linear(x, w, epilogue, cpu_stream());
        CHECK(y.dtype() == result);
        double rounding = result == mx::float32 ? 2e-6
            : result == mx::float16             ? 5e-4
                                                : 4e-3;
        CHECK(relative_error(y, expected) < rounding);
        // The graph rounds the product to the type: 8 or 11 bits.
        auto graph = reference::linear(x, w, epilogue, graph_stream());
        CHECK(graph.dtype() == result);
        CHECK(relative_error(graph, expected) < 2e-2);
      }
    }
  }
}

TEST_CASE("linear of every layout of its inputs") {
  for (int rows : {2, 40}) {
    auto x = noise_array({rows, 36}, 1), w = noise_array({24, 36}, 2);
    auto bias = noise_array({24}, 3), residual = noise_array({rows, 24}, 4);
    for (auto [backend, linear, s] :
         backend_ops(cpu::linear, reference::linear)) {
      CAPTURE(backend);
      auto run = [&, linear = linear, s = s](
                     const mx::array& x,
                     const mx::array& w,
                     const mx::array& bias,
                     const mx::array& residual) {
        ops::Epilogue epilogue{.bias = bias, .residual = residual};
        return linear(x, w, epilogue, s);
      };
      check_views(x, [&](auto& v) { return run(v, w, bias, residual); });
      check_views(w, [&](auto& v) { return run(x, v, bias, residual); });
      check_views(bias, [&](auto& v) { return run(x, w, v, residual); });
      check_views(residual, [&](auto& v) { return run(x, w, bias, v); });
    }
  }
}

TEST_CASE("linear refuses weights that are not floating") {
  auto w = mx::astype(noise_array({4, 8}, 1), mx::int32, cpu_stream());
  CHECK_THROWS_WITH(
      cpu::linear(noise_array({1, 8}, 2), w, {}, cpu_stream()),
      "expected a float32, float16 or bfloat16 array");
}

TEST_CASE("linear refuses an epilogue of another size") {
  auto x = noise_array({2, 8}, 1), w = noise_array({4, 8}, 2);
  CHECK_THROWS_WITH(
      cpu::linear(x, w, {.bias = noise_array({5}, 3)}, cpu_stream()),
      "an epilogue's bias has 5 elements; its product needs 4");
  CHECK_THROWS_WITH(
      cpu::linear(x, w, {.residual = noise_array({1, 4}, 3)}, cpu_stream()),
      "an epilogue's residual has 4 elements; its product needs 8");
}

TEST_CASE("an epilogue has an activation or a Snake") {
  ops::Epilogue both{
      .activation = ops::Activation::silu, .snake = noise_array({4}, 1)};
  CHECK_THROWS_WITH(
      cpu::linear(
          noise_array({1, 8}, 2), noise_array({4, 8}, 3), both, cpu_stream()),
      "an epilogue has an activation or a Snake, not both");
}

TEST_CASE("norm_linear is a linear of the norm") {
  constexpr float kEps = 1e-5f;
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 16, 17, 90}) {
      CAPTURE(rows);
      auto x = noise_array({1, rows, 133}, 1), norm = noise_array({133}, 2);
      auto w = noise_array({70, 133}, 3, dtype);
      auto normed = cpu::rms_norm(x, {norm, kEps}, s);
      auto expected = cpu::linear(normed, w, {}, s);
      CHECK(same_bits(cpu::norm_linear(x, {norm, kEps}, w, {}, s), expected));
      auto graph = reference::norm_linear(
          x, {norm, kEps}, mx::astype(w, mx::float32, s), {}, graph_stream());
      CHECK(relative_error(graph, values(expected)) < graph_tolerance(1e-5));
    }
  }
}

TEST_CASE("norm_linear with a shift is a linear of the layer norm") {
  constexpr float kEps = 1e-5f;
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 16, 17, 90}) {
      CAPTURE(rows);
      auto x = noise_array({1, rows, 133}, 1);
      auto gain = noise_array({133}, 2), shift = noise_array({133}, 4);
      auto w = noise_array({70, 133}, 3, dtype);
      ops::Epilogue epilogue{
          .bias = noise_array({70}, 5),
          .activation = ops::Activation::gelu_tanh};
      auto normed = cpu::layer_norm(x, {gain, shift, kEps}, mx::float32, s);
      auto expected = cpu::linear(normed, w, epilogue, s);
      ops::Norm norm{gain, kEps, shift};
      CHECK(same_bits(cpu::norm_linear(x, norm, w, epilogue, s), expected));
      auto graph = reference::norm_linear(
          x, norm, mx::astype(w, mx::float32, s), epilogue, graph_stream());
      CHECK(relative_error(graph, values(expected)) < graph_tolerance(1e-5));
    }
  }
}

TEST_CASE("norm_swiglu is a swiglu of the norm_linear") {
  constexpr float kEps = 1e-5f;
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 5, 16, 17, 90}) {
      for (int features : {35, 128}) {
        CAPTURE(rows);
        auto x = noise_array({1, rows, 64}, 1), norm = noise_array({64}, 2);
        auto w = noise_array({2 * features, 64}, 3, dtype);
        auto both = cpu::norm_linear(x, {norm, kEps}, w, {}, s);
        auto expected = cpu::swiglu(both, s);
        CHECK(same_bits(cpu::norm_swiglu(x, {norm, kEps}, w, s), expected));
        auto graph = reference::norm_swiglu(
            x, {norm, kEps}, mx::astype(w, mx::float32, s), graph_stream());
        CHECK(relative_error(graph, values(expected)) < graph_tolerance(1e-5));
      }
    }
  }
}
