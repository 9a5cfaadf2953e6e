#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Both over the last axis. x: [..., C]; w, b: [C].
mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s);

mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Stream s);

} // namespace nightingale::ops
