#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// One Euler step of the flow: x + dt * v, where v is the velocity's one row, or
// (1 + guidance) * v[0] - guidance * v[1] of two. The returned array takes over
// x's buffer; the argument must not be read afterwards.
// x: [1, T, C]; velocity: [1 or 2, T, C], both float32 → [1, T, C]
mx::array euler_step(
    const mx::array& x,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s);

// Writes x into the first C columns of every row of `buffer`, and returns it:
// the returned array takes over the buffer, the argument must not be read
// afterwards. x: [1, T, C] float32; buffer: [B, T, at least C], any floating
// type
mx::array
write_columns(const mx::array& buffer, const mx::array& x, mx::Stream s);

} // namespace nightingale::ops
