#pragma once

#include <optional>

#include "nightingale/ops/backend.h"

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

} // namespace nightingale::ops
