#pragma once

#include <cstdint>

namespace nightingale::cpu {

// Activations of `count` elements; y may be x.
struct ActivationLoops {
  void (*silu)(const float* x, int64_t count, float* y);
  void (*gelu)(const float* x, int64_t count, float* y);
  void (*mish)(const float* x, int64_t count, float* y);
  void (*elu)(const float* x, int64_t count, float* y);
  void (*relu)(const float* x, int64_t count, float* y);
  void (*leaky_relu)(const float* x, int64_t count, float slope, float* y);
  void (*snake)(
      const float* x,
      const float* alpha,
      const float* inverse_alpha,
      int64_t count,
      float* y);

  // One step of `count` units of an LSTM: cell = sigmoid(f) * cell +
  // sigmoid(i) * tanh(g), hidden = sigmoid(o) * tanh(cell). gates: [4, stride],
  // the sums of i, f, g and o.
  void (*lstm_cell)(
      const float* gates,
      int64_t stride,
      int64_t count,
      float* cell,
      float* hidden);
};

} // namespace nightingale::cpu
