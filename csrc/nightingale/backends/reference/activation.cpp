#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>
#include <vector>

#include "mlx/compile.h"
#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

namespace {

mx::array scalar(float value, const mx::array& like) {
  return mx::array(value, like.dtype());
}

mx::array silu(const mx::array& x, mx::Stream s) {
  return mx::multiply(x, mx::sigmoid(x, s), s);
}

mx::array gelu(const mx::array& x, mx::Stream s) {
  auto phi = mx::erf(mx::multiply(x, scalar(std::sqrt(0.5f), x), s), s);
  auto half = mx::multiply(x, scalar(0.5f, x), s);
  return mx::multiply(half, mx::add(phi, scalar(1.0f, x), s), s);
}

mx::array gelu_tanh(const mx::array& x, mx::Stream s) {
  auto cube = mx::multiply(mx::multiply(x, x, s), x, s);
  auto inner = mx::add(x, mx::multiply(cube, scalar(0.044715f, x), s), s);
  auto gain = scalar(std::sqrt(2.0f * std::numbers::inv_pi_v<float>), x);
  auto curve = mx::tanh(mx::multiply(inner, gain, s), s);
  auto half = mx::multiply(x, scalar(0.5f, x), s);
  return mx::multiply(half, mx::add(curve, scalar(1.0f, x), s), s);
}

mx::array mish(const mx::array& x, mx::Stream s) {
  auto softplus = mx::logaddexp(x, scalar(0.0f, x), s);
  return mx::multiply(x, mx::tanh(softplus, s), s);
}

mx::array elu(const mx::array& x, mx::Stream s) {
  auto zero = scalar(0.0f, x);
  return mx::where(
      mx::greater(x, zero, s), x, mx::expm1(mx::minimum(x, zero, s), s), s);
}

mx::array
graph_of(const mx::array& x, ops::Activation activation, mx::Stream s) {
  switch (activation) {
    case ops::Activation::none:
      return x;
    case ops::Activation::silu:
      return silu(x, s);
    case ops::Activation::gelu:
      return gelu(x, s);
    case ops::Activation::mish:
      return mish(x, s);
    case ops::Activation::elu:
      return elu(x, s);
    case ops::Activation::leaky_relu:
      return leaky_relu(x, 0.01f, s);
    case ops::Activation::relu:
      return mx::maximum(x, scalar(0.0f, x), s);
    case ops::Activation::gelu_tanh:
      return gelu_tanh(x, s);
  }
  return x;
}

// The activation as one kernel; what is compiled belongs to a stream. Compiled
// for any shape, so that lengths leave nothing behind.
mx::array
one_kernel(const mx::array& x, ops::Activation activation, mx::Stream s) {
  using Compiled =
      std::function<std::vector<mx::array>(const std::vector<mx::array>&)>;
  static std::mutex mutex;
  static auto* kernels =
      new std::map<std::pair<ops::Activation, int>, Compiled>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& kernel = (*kernels)[{activation, s.index}];
  if (!kernel) {
    kernel = mx::compile(
        Compiled([=](const std::vector<mx::array>& in) {
          return std::vector<mx::array>{graph_of(in[0], activation, s)};
        }),
        /* shapeless */ true);
  }
  return kernel({x})[0];
}

} // namespace

mx::array
activate(const mx::array& x, ops::Activation activation, mx::Stream s) {
  if (activation == ops::Activation::none) {
    return x;
  }
  // For a CPU stream MLX would call the system's compiler.
  return ops::on_cpu(s) ? graph_of(x, activation, s)
                        : one_kernel(x, activation, s);
}

mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s) {
  return mx::maximum(x, mx::multiply(x, scalar(slope, x), s), s);
}

mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s) {
  auto sine = mx::sin(mx::multiply(x, alpha, s), s);
  auto gain = mx::reciprocal(mx::add(alpha, scalar(1e-9f, alpha), s), s);
  return mx::add(x, mx::multiply(gain, mx::square(sine, s), s), s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
  auto halves = mx::split(gate_up, 2, -1, s);
  return mx::multiply(silu(halves[0], s), halves[1], s);
}

mx::array cast(const mx::array& x, mx::Dtype dtype, mx::Stream s) {
  return mx::astype(x, dtype, s);
}

} // namespace nightingale::reference
