#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// The state of the flow's ODE solver. All steps use the same buffers.
struct OdeState {
  mx::array x; // [1, T, C] float32
  // The estimator's input: [B, T, at least C] of any floating type, x in the
  // first C columns of every row.
  mx::array input;
  // Set where kernels write both in place: an output of the last write, which
  // every reader must take as an input too.
  std::optional<mx::array> written = std::nullopt;

  // The arrays to evaluate so that both are up to date.
  std::vector<mx::array> results() const {
    return written ? std::vector{*written} : std::vector{x, input};
  }
};

struct EulerStep {
  float guidance;
  float dt;
};

// x + dt * v, where v is the velocity's one row, or (1 + guidance) * v[0] -
// guidance * v[1] of two. The result takes over the state's buffers, which must
// not be read afterwards. B is the velocity's.
// velocity: [1 or 2, T, C] float32
OdeState euler_step(
    const OdeState& state,
    const mx::array& velocity,
    EulerStep step,
    mx::Stream s);

// The state's x after all steps, for any op to read.
mx::array solution(const OdeState& state);

} // namespace nightingale::ops
