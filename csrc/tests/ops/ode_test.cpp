#include "nightingale/ops/ode.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr ops::EulerStep kStep{.guidance = 0.7f, .dt = 0.1f};

// New arrays in every call: a step takes them over.
ops::OdeState state_of(int batch, int rows, int channels) {
  return {
      noise_array({1, rows, channels}, 1),
      noise_array({batch, rows, channels + 7}, 4)};
}

} // namespace

TEST_CASE("euler_step follows the velocity, guided where there are two") {
  for (int batch : {1, 2}) {
    for (auto [rows, channels] :
         {std::pair(1, 1), std::pair(7, 80), std::pair(500, 80)}) {
      CAPTURE(batch);
      CAPTURE(rows);
      auto velocity = noise_array({batch, rows, channels}, 2);
      Values from = values(noise_array({1, rows, channels}, 1));
      Values v = values(velocity), expected;
      size_t size = from.size();
      for (size_t i = 0; i < size; ++i) {
        double mixed = batch == 1 ? v[i] : 1.7 * v[i] - 0.7 * v[size + i];
        expected.push_back(from[i] + 0.1 * mixed);
      }
      for (auto [backend, step, s] :
           backend_ops(cpu::euler_step, reference::euler_step)) {
        CAPTURE(backend);
        auto next = step(state_of(batch, rows, channels), velocity, kStep, s);
        CHECK(next.x.shape() == mx::Shape{1, rows, channels});
        CHECK(relative_error(next.x, expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("euler_step of every layout of the velocity") {
  auto v = noise_array({2, 5, 8}, 2);
  for (auto [backend, step, s] :
       backend_ops(cpu::euler_step, reference::euler_step)) {
    CAPTURE(backend);
    check_views(v, [&](auto& view) {
      return step(state_of(2, 5, 8), view, kStep, s).x;
    });
  }
}

TEST_CASE("euler_step on the CPU makes no new array") {
  auto state = state_of(2, 50, 80);
  mx::eval(state.x, state.input);
  auto next =
      cpu::euler_step(state, noise_array({2, 50, 80}, 2), kStep, cpu_stream());
  mx::eval(next.x, next.input);
  CHECK(next.x.data<float>() == state.x.data<float>());
  CHECK(next.input.data<float>() == state.input.data<float>());
}

TEST_CASE("euler_step writes x into the first columns of every input row") {
  for (mx::Dtype dtype : kFloatTypes) {
    CAPTURE(dtype);
    auto still = mx::zeros({2, 9, 5}, mx::float32, cpu_stream());
    auto start = values(mx::astype(noise_array({2, 9, 12}, 2), dtype));
    auto written = values(mx::astype(noise_array({1, 9, 5}, 1), dtype));
    for (auto [backend, step, s] :
         backend_ops(cpu::euler_step, reference::euler_step)) {
      CAPTURE(backend);
      auto input = mx::astype(noise_array({2, 9, 12}, 2), dtype);
      mx::eval(input);
      auto y = step({noise_array({1, 9, 5}, 1), input}, still, kStep, s).input;
      CHECK(y.dtype() == dtype);
      auto found = values(y);
      REQUIRE(found.size() == start.size());
      for (size_t i = 0; i < found.size(); ++i) {
        size_t row = i / 12, column = i % 12;
        double expected = column < 5 ? written[row % 9 * 5 + column] : start[i];
        REQUIRE(found[i] == expected);
      }
    }
  }
}
