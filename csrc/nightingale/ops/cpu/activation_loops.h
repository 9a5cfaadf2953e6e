#pragma once

#include <cstdint>

namespace nightingale::cpu {

// Activations of `count` elements; y may be x.
struct ActivationLoops {
  void (*silu)(const float* x, int64_t count, float* y);
  void (*gelu)(const float* x, int64_t count, float* y);
  void (*mish)(const float* x, int64_t count, float* y);
  void (*elu)(const float* x, int64_t count, float* y);
  void (*leaky_relu)(const float* x, int64_t count, float slope, float* y);
  void (*snake)(
      const float* x,
      const float* alpha,
      const float* inverse_alpha,
      int64_t count,
      float* y);
};

} // namespace nightingale::cpu
