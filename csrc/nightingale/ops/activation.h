#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

enum class Activation {
  none,
  silu, // x * sigmoid(x)
  gelu, // x * Phi(x), exact
  mish, // x * tanh(log(1 + exp(x)))
  elu, // x above 0, exp(x) - 1 below
  leaky_relu, // x above 0, 0.01 x below
  relu, // x above 0, 0 below
  gelu_tanh, // GPT-2's: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x³)))
};

mx::array activate(const mx::array& x, Activation activation, mx::Stream s);

// x above 0, slope * x below.
mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s);

// x + sin²(alpha * x) / alpha for each channel. x: [..., C]; alpha: [C]
mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s);

// silu(gate) * up. gate_up: [..., 2F], gate first → [..., F]
mx::array swiglu(const mx::array& gate_up, mx::Stream s);

// `x` as `dtype`.
mx::array cast(const mx::array& x, mx::Dtype dtype, mx::Stream s);

} // namespace nightingale::ops
