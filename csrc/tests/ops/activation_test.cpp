#include "nightingale/ops/activation.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

double silu_twin(double x) {
  return x / (1.0 + std::exp(-x));
}

Values swiglu_twin(const Values& gate_up, int channels) {
  Values y;
  for (size_t row = 0; row < gate_up.size(); row += 2 * channels) {
    for (int c = 0; c < channels; ++c) {
      y.push_back(silu_twin(gate_up[row + c]) * gate_up[row + channels + c]);
    }
  }
  return y;
}

} // namespace

TEST_CASE("silu of any number of elements") {
  for (int count : {1, 7, 16, 33, 1000, 16384, 16385, 40000}) {
    CAPTURE(count);
    auto x = noise_array({count}, 1);
    Values expected = values(x);
    std::ranges::transform(expected, expected.begin(), silu_twin);
    CHECK(relative_error(cpu::silu(x, cpu_stream()), expected) < 1e-6);
    CHECK(
        relative_error(gpu::silu(x, graph_stream()), expected) <
        graph_tolerance(1e-6));
  }
}

TEST_CASE("silu passes large inputs and stops large negative ones") {
  auto y = floats(
      cpu::silu(array_of({90.0f, 1e30f, -90.0f, -1e4f}, {4}), cpu_stream()));
  CHECK(y[0] == 90.0f);
  CHECK(y[1] == 1e30f);
  CHECK(std::fabs(y[2]) < 1e-35f);
  CHECK(std::fabs(y[3]) < 1e-33f);
}

TEST_CASE("swiglu gates the second half by the first") {
  for (int channels : {1, 5, 16, 100, 4096, 20000}) {
    for (int rows : {1, 2, 9}) {
      CAPTURE(channels);
      CAPTURE(rows);
      auto x = noise_array({1, rows, 2 * channels}, 1);
      Values expected = swiglu_twin(values(x), channels);
      auto y = cpu::swiglu(x, cpu_stream());
      CHECK(y.shape() == mx::Shape{1, rows, channels});
      CHECK(relative_error(y, expected) < 1e-6);
      y = gpu::swiglu(x, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
    }
  }
}

TEST_CASE("activations of every layout of their input, and of halves") {
  auto x = noise_array({2, 3, 24}, 1);
  check_views(x, [](auto& v) { return cpu::silu(v, cpu_stream()); });
  check_views(x, [](auto& v) { return gpu::silu(v, graph_stream()); });
  check_views(x, [](auto& v) { return cpu::swiglu(v, cpu_stream()); });
  check_views(x, [](auto& v) { return gpu::swiglu(v, graph_stream()); });
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto half = noise_array({3, 26}, 1, dtype);
    auto y = cpu::swiglu(half, cpu_stream());
    CHECK(relative_error(y, swiglu_twin(values(half), 13)) < 1e-6);
  }
}
