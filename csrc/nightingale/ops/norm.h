#pragma once

#include <optional>

#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// All over the last axis. x: [..., C]; w, b: [C].
mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s);

// `dtype` is the result's.
mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Dtype dtype,
    mx::Stream s);

inline mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Stream s) {
  return layer_norm(x, w, b, eps, x.dtype(), s);
}

// mish(layer_norm(x, w, b, eps)) (+ shift). shift: [C]
mx::array norm_mish(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s);

// The weights of a layer_norm.
struct LayerNorm {
  mx::array w, b;
  float eps;
};

inline mx::array layer_norm(
    const mx::array& x,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  return layer_norm(x, norm.w, norm.b, norm.eps, dtype, s);
}

inline mx::array norm_mish(
    const mx::array& x,
    const LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  return norm_mish(x, norm.w, norm.b, norm.eps, shift, dtype, s);
}

// What a residual network carries on, and its norm.
struct Normed {
  mx::array sum;
  mx::array normed;
};

// sum = residual + x · wᵀ + bias, and the norm of it as `dtype`: the end of one
// branch and the beginning of the next. x: [..., K]; residual: [..., N]
Normed linear_add_norm(
    const mx::array& x,
    const Matrix& w,
    const mx::array& bias,
    const mx::array& residual,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::ops
