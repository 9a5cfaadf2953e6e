#pragma once

#include <optional>

#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// Norms over the last axis of x: [..., C]. Their weights are [C].
struct RmsNorm {
  mx::array w;
  float eps;
};

struct LayerNorm {
  mx::array w, b;
  float eps;
};

// An RMS norm or, with `b`, a layer norm.
struct Norm {
  mx::array w;
  float eps;
  std::optional<mx::array> b = std::nullopt;
};

mx::array rms_norm(const mx::array& x, const RmsNorm& norm, mx::Stream s);

// `dtype` is the result's.
mx::array layer_norm(
    const mx::array& x,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

// mish(layer_norm(x)) (+ shift). shift: [C]
mx::array norm_mish(
    const mx::array& x,
    const LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s);

// A residual sum and its norm.
struct Normed {
  mx::array sum;
  mx::array normed;
};

// What follows the product in linear_add_norm.
struct AddNorm {
  mx::array bias; // [N]
  mx::array residual; // [..., N]
  LayerNorm norm;
  mx::Dtype dtype; // of `normed`
};

// sum = residual + x · wᵀ + bias, of the residual's type, and its norm: the end
// of one branch and the start of the next. x: [..., K]
Normed linear_add_norm(
    const mx::array& x,
    const Matrix& w,
    const AddNorm& add,
    mx::Stream s);

} // namespace nightingale::ops
