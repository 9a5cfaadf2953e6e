#include "nightingale/ops/lstm.h"

#include <doctest/doctest.h>

#include "lstm_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

ops::LstmWeights
layer_of(int inputs, int units, mx::Dtype dtype = mx::float32) {
  auto scaled = [=](mx::Shape shape, uint32_t seed) {
    float scale = 1.0f / std::sqrt(float(shape[1]));
    auto numbers = noise(size_t(shape[0]) * shape[1], seed);
    for (float& x : numbers) {
      x *= scale;
    }
    return array_of(numbers, shape, dtype);
  };
  return {
      scaled({4 * units, inputs}, 1),
      scaled({4 * units, units}, 2),
      noise_array({4 * units}, 3)};
}

Values in_double(const mx::array& x, const ops::LstmWeights& layer) {
  return lstm_reference(
      values(x), x.shape(0), x.shape(1), layer.w_ih, layer.w_hh, layer.bias);
}

} // namespace

TEST_CASE("lstm of any number of rows, steps, inputs and units") {
  struct Size {
    int batch, length, inputs, units;
  };
  for (auto [batch, length, inputs, units] :
       {Size{1, 1, 1, 1},
        Size{1, 1, 3, 5},
        Size{2, 3, 7, 5},
        Size{1, 40, 40, 16},
        Size{14, 9, 12, 32},
        Size{15, 6, 40, 33},
        Size{29, 5, 17, 100},
        Size{80, 3, 40, 64}}) {
    CAPTURE(batch);
    CAPTURE(units);
    auto layer = layer_of(inputs, units);
    auto x = noise_array({batch, length, inputs}, 4);
    Values expected = in_double(x, layer);
    for (auto [backend, lstm, s] : backend_ops(cpu::lstm, reference::lstm)) {
      CAPTURE(backend);
      auto y = lstm(x, layer, s);
      CHECK(y.shape() == mx::Shape{batch, length, units});
      CHECK(y.dtype() == mx::float32);
      CHECK(relative_error(y, expected) < graph_tolerance(2e-6));
    }
  }
}

TEST_CASE("lstm of weights and inputs of any type") {
  for (mx::Dtype dtype : kFloatTypes) {
    auto layer = layer_of(24, 20, dtype);
    auto x = noise_array({3, 5, 24}, 4);
    auto y = cpu::lstm(x, layer, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(relative_error(y, in_double(x, layer)) < 2e-6);
  }
}

TEST_CASE("lstm of every layout of its input") {
  auto layer = layer_of(24, 20);
  for (auto [backend, lstm, s] : backend_ops(cpu::lstm, reference::lstm)) {
    CAPTURE(backend);
    auto run = [&](const mx::array& x, const mx::array& w_hh) {
      return lstm(x, {layer.w_ih, w_hh, layer.bias}, s);
    };
    auto x = noise_array({3, 5, 24}, 4);
    check_views(x, [&](auto& v) { return run(v, layer.w_hh); });
    check_views(layer.w_hh, [&](auto& v) { return run(x, v); });
  }
}

TEST_CASE("gates of an lstm that are wide open or shut are exact") {
  auto bias = [](float i, float f, float g, float o) {
    return array_of({i, f, g, o}, {4});
  };
  auto zero = mx::zeros({4, 1}, mx::float32, cpu_stream());
  auto x = noise_array({1, 3, 1}, 1);
  auto run = [&](const mx::array& b) {
    return floats(cpu::lstm(x, {zero, zero, b}, cpu_stream()));
  };
  // The cell counts its steps, forgets all of them, or is not let out.
  auto counted = run(bias(1e4f, 1e4f, 1e4f, 1e4f));
  for (int t = 0; t < 3; ++t) {
    CHECK(counted[t] == doctest::Approx(std::tanh(t + 1.0)).epsilon(1e-6));
  }
  for (float y : run(bias(1e4f, -1e4f, -1e4f, 1e4f))) {
    CHECK(y == doctest::Approx(std::tanh(-1.0)).epsilon(1e-6));
  }
  for (float y : run(bias(1e4f, 1e4f, 1e4f, -1e4f))) {
    CHECK(std::fabs(y) < 1e-37f);
  }
}
