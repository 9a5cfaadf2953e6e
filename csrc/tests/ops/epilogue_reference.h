#pragma once

// What an epilogue does to a product, in double precision.

#include <cmath>

#include "arrays.h"
#include "nightingale/ops/epilogue.h"

namespace nightingale::testing {

inline double activated(double x, ops::Activation activation) {
  switch (activation) {
    case ops::Activation::none:
      return x;
    case ops::Activation::silu:
      return x / (1.0 + std::exp(-x));
    case ops::Activation::gelu:
      return 0.5 * x * (1.0 + std::erf(x * std::sqrt(0.5)));
    case ops::Activation::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case ops::Activation::elu:
      return x > 0.0 ? x : std::expm1(x);
    case ops::Activation::leaky_relu:
      return x > 0.0 ? x : 0.01 * x;
    case ops::Activation::relu:
      return x > 0.0 ? x : 0.0;
    case ops::Activation::gelu_tanh:
      return 0.5 * x *
          (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

// sums: [..., columns]
inline Values apply_epilogue_reference(
    Values sums,
    int columns,
    const ops::Epilogue& epilogue) {
  auto or_none = [](const std::optional<mx::array>& x) {
    return x ? values(*x) : Values{};
  };
  Values bias = or_none(epilogue.bias), alpha = or_none(epilogue.snake);
  Values residual = or_none(epilogue.residual);
  for (size_t i = 0; i < sums.size(); ++i) {
    int column = i % columns;
    double x = sums[i] + (bias.empty() ? 0.0 : bias[column]);
    x = activated(x, epilogue.activation);
    if (!alpha.empty()) {
      double sine = std::sin(alpha[column] * x);
      x += sine * sine / alpha[column];
    }
    sums[i] = x + (residual.empty() ? 0.0 : residual[i]);
  }
  return sums;
}

// Every epilogue for a result of this shape.
inline std::vector<ops::Epilogue> epilogues(
    const mx::Shape& shape,
    mx::Dtype dtype = mx::float32) {
  auto bias = noise_array({shape.back()}, 31);
  auto alpha = mx::add(
      mx::abs(noise_array({shape.back()}, 32), cpu_stream()),
      mx::array(0.3f),
      cpu_stream());
  auto residual = noise_array(shape, 33, dtype);
  std::vector<ops::Epilogue> all{
      {},
      {.bias = bias},
      {.residual = residual},
      {.bias = bias, .residual = residual},
      {.snake = alpha},
      {.bias = bias, .snake = alpha, .residual = residual}};
  for (auto activation :
       {ops::Activation::silu,
        ops::Activation::gelu,
        ops::Activation::mish,
        ops::Activation::elu,
        ops::Activation::leaky_relu,
        ops::Activation::relu,
        ops::Activation::gelu_tanh}) {
    all.push_back({.activation = activation});
    all.push_back({bias, activation, std::nullopt, residual});
  }
  return all;
}

} // namespace nightingale::testing
