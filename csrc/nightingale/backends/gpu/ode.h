#pragma once

#include "nightingale/ops/ode.h"

namespace nightingale::gpu {

bool can_use_euler_step(const ops::OdeState& state, mx::Stream s);

// As in nightingale/ops/ode.h: one launch, in place.
ops::OdeState euler_step(
    const ops::OdeState& state,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s);

} // namespace nightingale::gpu
