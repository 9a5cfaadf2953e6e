#include "nightingale/ops/linear.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

struct Sizes {
  int rows, inner, outer;
};

Values linear_twin(
    const Values& x,
    const Values& w,
    const Values& bias,
    const Values& residual,
    Sizes n) {
  Values y(size_t(n.rows) * n.outer);
  for (int r = 0; r < n.rows; ++r) {
    for (int o = 0; o < n.outer; ++o) {
      double sum = bias.empty() ? 0.0 : bias[o];
      sum += residual.empty() ? 0.0 : residual[r * n.outer + o];
      for (int i = 0; i < n.inner; ++i) {
        sum += x[r * n.inner + i] * w[o * n.inner + i];
      }
      y[r * n.outer + o] = sum;
    }
  }
  return y;
}

void check_linear(Sizes n, mx::Dtype dtype, bool has_bias, bool has_residual) {
  CAPTURE(n.rows);
  CAPTURE(n.inner);
  CAPTURE(n.outer);
  CAPTURE(has_bias);
  CAPTURE(has_residual);
  auto x = noise_array({1, n.rows, n.inner}, 1);
  auto w = noise_array({n.outer, n.inner}, 2, dtype);
  std::optional<mx::array> bias, residual;
  if (has_bias) {
    bias = noise_array({n.outer}, 3);
  }
  if (has_residual) {
    residual = noise_array({1, n.rows, n.outer}, 4);
  }
  Values expected = linear_twin(
      values(x),
      values(w),
      bias ? values(*bias) : Values{},
      residual ? values(*residual) : Values{},
      n);
  auto y = cpu::linear(x, w, bias, residual, cpu_stream());
  CHECK(y.dtype() == mx::float32);
  CHECK(y.shape() == mx::Shape{1, n.rows, n.outer});
  CHECK(relative_error(y, expected) < 1e-6);
  auto graph = gpu::linear(x, w, bias, residual, graph_stream());
  CHECK(relative_error(graph, expected) < graph_tolerance(1e-6));
}

} // namespace

TEST_CASE("linear of any number of rows, with and without what is added") {
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 3, 5, 16, 17, 100, 300}) {
      check_linear({rows, 64, 48}, dtype, false, false);
      check_linear({rows, 64, 48}, dtype, true, false);
      check_linear({rows, 64, 48}, dtype, false, true);
      check_linear({rows, 64, 48}, dtype, true, true);
    }
  }
}

TEST_CASE("linear of sizes that no vector or tile divides") {
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 3, 5, 17, 70}) {
      check_linear({rows, 1, 1}, dtype, false, false);
      check_linear({rows, 7, 3}, dtype, true, true);
      check_linear({rows, 133, 33}, dtype, true, false);
      check_linear({rows, 17, 523}, dtype, false, true);
    }
  }
}

TEST_CASE("linear of no rows gives no rows") {
  auto x = mx::zeros({0, 8}, mx::float32, cpu_stream());
  auto y = ops::linear(x, noise_array({5, 8}, 1), cpu_stream());
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{0, 5});
}

TEST_CASE("linear takes half inputs and gives float32 on the CPU") {
  Sizes n{3, 40, 9};
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto x = noise_array({n.rows, n.inner}, 1, dtype);
    auto w = noise_array({n.outer, n.inner}, 2, dtype);
    auto bias = noise_array({n.outer}, 3, dtype);
    auto residual = noise_array({n.rows, n.outer}, 4, dtype);
    Values expected =
        linear_twin(values(x), values(w), values(bias), values(residual), n);
    auto y = cpu::linear(x, w, bias, residual, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(relative_error(y, expected) < 1e-6);
    // The graph rounds the product and each sum to the type: 8 or 11 bits.
    auto graph = gpu::linear(x, w, bias, residual, graph_stream());
    CHECK(graph.dtype() == dtype);
    CHECK(relative_error(graph, expected) < 2e-2);
  }
}

TEST_CASE("linear of every layout of its inputs") {
  for (int rows : {2, 40}) {
    auto x = noise_array({rows, 36}, 1);
    auto w = noise_array({24, 36}, 2);
    auto bias = noise_array({24}, 3);
    auto residual = noise_array({rows, 24}, 4);
    for (auto [form, linear, s] : forms(cpu::linear, gpu::linear)) {
      CAPTURE(form);
      check_views(x, [&](auto& v) { return linear(v, w, bias, residual, s); });
      check_views(w, [&](auto& v) { return linear(x, v, bias, residual, s); });
      check_views(bias, [&](auto& v) { return linear(x, w, v, residual, s); });
      check_views(residual, [&](auto& v) { return linear(x, w, bias, v, s); });
    }
  }
}

TEST_CASE("linear refuses weights that are not floating") {
  auto w = mx::astype(noise_array({4, 8}, 1), mx::int32, cpu_stream());
  CHECK_THROWS_WITH(
      cpu::linear(noise_array({1, 8}, 2), w, {}, {}, cpu_stream()),
      "expected a float32, float16 or bfloat16 array");
}
