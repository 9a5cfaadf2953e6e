#include "nightingale/ops/ode.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

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
      for (auto [form, step, s] :
           forms(cpu::euler_step, reference::euler_step)) {
        CAPTURE(form);
        auto x = noise_array({1, rows, channels}, 1); // is taken over
        auto y = step(x, velocity, 0.7f, 0.1f, s);
        CHECK(y.shape() == mx::Shape{1, rows, channels});
        CHECK(relative_error(y, expected) < 1e-6);
      }
    }
  }
}

TEST_CASE("euler_step of every layout of the velocity") {
  auto v = noise_array({2, 5, 8}, 2);
  for (auto [form, step, s] : forms(cpu::euler_step, reference::euler_step)) {
    CAPTURE(form);
    check_views(v, [&](auto& view) {
      return step(noise_array({1, 5, 8}, 1), view, 0.7f, 0.1f, s);
    });
  }
}

TEST_CASE("euler_step on the CPU makes no new array") {
  auto x = noise_array({1, 50, 80}, 1);
  mx::eval(x);
  const float* before = x.data<float>();
  auto y =
      cpu::euler_step(x, noise_array({2, 50, 80}, 2), 0.7f, 0.1f, cpu_stream());
  mx::eval(y);
  CHECK(y.data<float>() == before);
}

TEST_CASE("write_columns fills the first columns of every row") {
  for (mx::Dtype dtype : kFloatTypes) {
    CAPTURE(dtype);
    auto x = noise_array({1, 9, 5}, 1);
    auto start = values(mx::astype(noise_array({2, 9, 12}, 2), dtype));
    auto written = values(mx::astype(x, dtype));
    for (auto [form, write, s] :
         forms(cpu::write_columns, reference::write_columns)) {
      CAPTURE(form);
      auto buffer = mx::astype(noise_array({2, 9, 12}, 2), dtype);
      mx::eval(buffer);
      auto y = write(buffer, x, s);
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
