#include "nightingale/ops/activation.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"

using namespace nightingale;
using namespace nightingale::testing;
using ops::Activation;

namespace {

double silu_reference(double x) {
  return x / (1.0 + std::exp(-x));
}

double activation_reference(double x, Activation activation) {
  switch (activation) {
    case Activation::silu:
      return silu_reference(x);
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Activation::elu:
      return x > 0 ? x : std::expm1(x);
    case Activation::leaky_relu:
      return x > 0 ? x : 0.01f * x;
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::gelu_tanh:
      return 0.5 * x *
          (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    default:
      return x;
  }
}

Values activation_reference(Values x, Activation activation) {
  for (double& value : x) {
    value = activation_reference(value, activation);
  }
  return x;
}

const std::vector<Activation> kActivations{
    Activation::none,
    Activation::silu,
    Activation::gelu,
    Activation::mish,
    Activation::elu,
    Activation::leaky_relu,
    Activation::relu,
    Activation::gelu_tanh};

Values snake_reference(Values x, const Values& alpha) {
  for (size_t i = 0; i < x.size(); ++i) {
    double a = alpha[i % alpha.size()];
    x[i] += std::pow(std::sin(a * x[i]), 2) / a;
  }
  return x;
}

Values swiglu_reference(const Values& gate_up, int channels) {
  Values y;
  for (size_t row = 0; row < gate_up.size(); row += 2 * channels) {
    for (int c = 0; c < channels; ++c) {
      y.push_back(
          silu_reference(gate_up[row + c]) * gate_up[row + channels + c]);
    }
  }
  return y;
}

// Of one part in: float32 sums, and how a half is rounded.
double rounding(mx::Dtype dtype) {
  return dtype == mx::float32 ? 1e-6 : dtype == mx::float16 ? 5e-4 : 4e-3;
}

} // namespace

TEST_CASE("activations of any number of elements") {
  for (Activation activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    for (int count : {1, 7, 16, 33, 1000, 4096, 4097, 40000}) {
      CAPTURE(count);
      auto x = noise_array({count}, 1);
      Values expected = activation_reference(values(x), activation);
      auto y = cpu::activate(x, activation, cpu_stream());
      CHECK(relative_error(y, expected) < 1e-6);
      y = reference::activate(x, activation, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
    }
  }
}

TEST_CASE("activations of halves have their input's type") {
  for (Activation activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    for (mx::Dtype dtype : kFloatTypes) {
      auto x = noise_array({3, 4099}, 1, dtype);
      Values expected = activation_reference(values(x), activation);
      auto y = cpu::activate(x, activation, cpu_stream());
      CHECK(y.dtype() == dtype);
      CHECK(relative_error(y, expected) < rounding(dtype));
    }
  }
}

TEST_CASE("activations pass large inputs and stop large negative ones") {
  auto x = array_of({90.0f, 1e30f, INFINITY, -90.0f, -1e4f, -INFINITY}, {6});
  for (auto activation :
       {Activation::silu,
        Activation::gelu,
        Activation::mish,
        Activation::relu}) {
    CAPTURE(static_cast<int>(activation));
    auto y = floats(cpu::activate(x, activation, cpu_stream()));
    CHECK(y[0] == 90.0f);
    CHECK(y[1] == 1e30f);
    CHECK(y[2] == INFINITY);
    CHECK(std::fabs(y[3]) < 1e-35f);
    CHECK(std::fabs(y[4]) < 1e-35f);
    CHECK(std::fabs(y[5]) < 1e-35f);
  }
  auto y = floats(cpu::activate(x, Activation::elu, cpu_stream()));
  CHECK(y[2] == INFINITY);
  CHECK(y[4] == -1.0f);
  CHECK(y[5] == -1.0f);
}

TEST_CASE("activations do not hide a NaN") {
  auto x = array_of({std::nanf(""), 1.0f}, {2});
  auto alpha = array_of({1.0f, 1.0f}, {2});
  for (Activation activation : kActivations) {
    CAPTURE(static_cast<int>(activation));
    auto y = floats(cpu::activate(x, activation, cpu_stream()));
    CHECK(std::isnan(y[0]));
    CHECK(std::isfinite(y[1]));
  }
  CHECK(std::isnan(floats(cpu::snake(x, alpha, cpu_stream()))[0]));
}

TEST_CASE("activations of nothing are nothing") {
  auto x = mx::zeros({2, 0}, mx::float32, cpu_stream());
  auto y = cpu::activate(x, Activation::gelu, cpu_stream());
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{2, 0});
}

TEST_CASE("leaky_relu of any slope") {
  auto x = noise_array({5, 33}, 1);
  for (float slope : {0.0f, 0.01f, 0.1f, 1.0f}) {
    CAPTURE(slope);
    Values expected = values(x);
    for (double& value : expected) {
      value = value > 0 ? value : slope * value;
    }
    auto y = cpu::leaky_relu(x, slope, cpu_stream());
    CHECK(relative_error(y, expected) < 1e-7);
    y = reference::leaky_relu(x, slope, graph_stream());
    CHECK(relative_error(y, expected) < 1e-7);
  }
}

TEST_CASE("snake of any width, with each channel's alpha") {
  for (int channels : {1, 7, 16, 64, 100, 5000}) {
    for (int rows : {1, 3, 130}) {
      CAPTURE(channels);
      CAPTURE(rows);
      auto x = noise_array({1, rows, channels}, 1);
      auto scales = noise(channels, 2);
      for (float& a : scales) {
        a = 0.1f + std::fabs(a);
      }
      auto alpha = array_of(scales, {channels});
      Values expected = snake_reference(values(x), values(alpha));
      auto y = cpu::snake(x, alpha, cpu_stream());
      CHECK(relative_error(y, expected) < 1e-6);
      y = reference::snake(x, alpha, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
    }
  }
}

TEST_CASE("snake of large inputs and of halves") {
  auto numbers = noise(4000, 1);
  for (float& x : numbers) {
    x *= 2000.0f;
  }
  auto x = array_of(numbers, {1, 100, 40});
  auto alpha = array_of(std::vector<float>(40, 1.0f), {40});
  Values expected = snake_reference(values(x), values(alpha));
  auto y = values(cpu::snake(x, alpha, cpu_stream()));
  for (size_t i = 0; i < y.size(); ++i) {
    // Rounding of x itself, and of a square of a sine.
    REQUIRE(std::fabs(y[i] - expected[i]) < 4e-7 + 1e-7 * std::fabs(y[i]));
  }
  auto half = noise_array({3, 40}, 1, mx::bfloat16);
  auto rounded = cpu::snake(half, alpha, cpu_stream());
  CHECK(rounded.dtype() == mx::bfloat16);
  expected = snake_reference(values(half), values(alpha));
  CHECK(relative_error(rounded, expected) < 4e-3);
}

TEST_CASE("swiglu gates the second half by the first") {
  for (int channels : {1, 5, 16, 100, 4096, 20000}) {
    for (int rows : {1, 2, 9}) {
      CAPTURE(channels);
      CAPTURE(rows);
      auto x = noise_array({1, rows, 2 * channels}, 1);
      Values expected = swiglu_reference(values(x), channels);
      auto y = cpu::swiglu(x, cpu_stream());
      CHECK(y.shape() == mx::Shape{1, rows, channels});
      CHECK(relative_error(y, expected) < 1e-6);
      y = reference::swiglu(x, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
    }
  }
}

TEST_CASE("cast rounds as MLX does, between all floating types") {
  auto numbers = noise(10'007, 1);
  numbers[0] = INFINITY;
  numbers[1] = -INFINITY;
  numbers[2] = 1e6f;
  numbers[3] = 1e-7f;
  numbers[4] = -0.0f;
  for (mx::Dtype from : kFloatTypes) {
    for (mx::Dtype to : kFloatTypes) {
      auto x = array_of(numbers, {10'007}, from);
      auto y = cpu::cast(x, to, cpu_stream());
      CHECK(y.dtype() == to);
      CHECK(same_bits(y, reference::cast(x, to, graph_stream())));
    }
  }
}

TEST_CASE("cast of what is not floating is an error") {
  auto s = cpu_stream();
  CHECK_THROWS_AS(cpu::cast(mx::array({1, 2}), mx::float32, s), Error);
  CHECK_THROWS_AS(cpu::cast(noise_array({3}, 1), mx::int32, s), Error);
}

TEST_CASE("activations of every layout of their input, and of halves") {
  auto x = noise_array({2, 3, 24}, 1);
  auto alpha = array_of(std::vector<float>(24, 0.7f), {24});
  for (auto [backend, activate, s] :
       backend_ops(cpu::activate, reference::activate)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return activate(v, Activation::mish, s); });
  }
  for (auto [backend, snake, s] : backend_ops(cpu::snake, reference::snake)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return snake(v, alpha, s); });
    check_views(alpha, [&](auto& v) { return snake(x, v, s); });
  }
  for (auto [backend, swiglu, s] :
       backend_ops(cpu::swiglu, reference::swiglu)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return swiglu(v, s); });
  }
  check_views(
      x, [](auto& v) { return cpu::cast(v, mx::float16, cpu_stream()); });
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto half = noise_array({3, 26}, 1, dtype);
    auto y = cpu::swiglu(half, cpu_stream());
    CHECK(relative_error(y, swiglu_reference(values(half), 13)) < 1e-6);
  }
}
