#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// A flow on its way from noise, in the same buffers from the first step to the
// last.
struct OdeState {
  mx::array x; // [1, T, C] float32
  // What the estimator sees: [B, T, at least C] of any floating type, x in the
  // first C columns of every row.
  mx::array input;
  // Where kernels write the two in place: of the last write. Who reads them
  // takes it in as well.
  std::optional<mx::array> written = std::nullopt;

  // What is to be computed before both are.
  std::vector<mx::array> results() const {
    return written ? std::vector{*written} : std::vector{x, input};
  }
};

// One Euler step: x + dt * v, where v is the velocity's one row, or
// (1 + guidance) * v[0] - guidance * v[1] of two. The result takes over the
// state's buffers, which must not be read afterwards. B is the velocity's.
// velocity: [1 or 2, T, C] float32
OdeState euler_step(
    const OdeState& state,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s);

// The state's x once all its steps are done, for any op to read.
mx::array solution(const OdeState& state);

} // namespace nightingale::ops
