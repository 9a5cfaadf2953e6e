#pragma once

#include <optional>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// x · wᵀ (+ bias) (+ residual).
// x: [..., K]; w: [N, K] float32, float16 or bfloat16, read as stored;
// bias: [N]; residual: [..., N]. On the CPU x and the result are float32.
mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    const std::optional<mx::array>& residual,
    mx::Stream s);

inline mx::array linear(const mx::array& x, const mx::array& w, mx::Stream s) {
  return linear(x, w, std::nullopt, std::nullopt, s);
}

// linear(rms_norm(x, norm, eps), w). norm: [K]
mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& w,
    mx::Stream s);

// swiglu(norm_linear(x, norm, eps, gate_up)). gate_up: [2F, K], the gate's rows
// first → [..., F]
mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& gate_up,
    mx::Stream s);

} // namespace nightingale::ops
