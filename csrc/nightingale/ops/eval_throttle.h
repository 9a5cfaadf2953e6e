#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Evaluates a long graph in parts while the host builds it: each part starts as
// soon as it is built, so that a GPU does not wait for the rest, and the host
// waits for the part before it, so that at most two parts use memory at once.
class EvalThrottle {
 public:
  explicit EvalThrottle(mx::Stream s) : stream_(s) {}

  // `x` is the result of the next part.
  void keep(const mx::array& x);

  // The results of a step, which end its last part. On a CPU they are evaluated
  // before this returns; on a GPU in the next call.
  void end_step(std::vector<mx::array> results);

 private:
  void start(std::vector<mx::array> results);

  mx::Stream stream_;
  std::optional<mx::array> started_;
};

} // namespace nightingale::ops
