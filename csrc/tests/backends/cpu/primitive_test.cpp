#include "nightingale/backends/cpu/primitive.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

#include "mlx/ops.h"
#include "mlx/transforms.h"

using namespace nightingale;

TEST_CASE(
    "an op that fails on the stream's thread is counted and gives zeros") {
  auto s = mx::default_stream(mx::Device::cpu);
  auto failing = [&](auto error) {
    return cpu::make_op(
        "Failing",
        {{3}},
        {mx::ones({3}, mx::float32, s)},
        [error](const cpu::Arrays&, cpu::Arrays&) { throw error; },
        s);
  };
  auto before = cpu::failed_ops();
  auto x = failing(std::bad_alloc());
  mx::eval(x);
  CHECK(cpu::failed_ops() == before + 1);
  CHECK(cpu::last_failure() == "out of memory");
  for (int i = 0; i < 3; ++i) {
    CHECK(x.data<float>()[i] == 0.0f);
  }
  mx::eval(failing(std::runtime_error("no luck")));
  CHECK(cpu::failed_ops() == before + 2);
  CHECK(cpu::last_failure() == "no luck");
}
