#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Keeps a host that builds a long graph in step with a GPU: what has been built
// is started, so that the GPU does not wait for the rest, and the host stays at
// most one piece ahead, so that no more than two pieces' memory is in use.
class EvalThrottle {
 public:
  explicit EvalThrottle(mx::Stream s) : stream_(s) {}

  // `x` is the result of the next piece.
  void keep(const mx::array& x);

  // The results of a step, whose last piece they end. On a CPU they are
  // computed here and now; a GPU is waited for one piece later.
  void end_step(std::vector<mx::array> results);

 private:
  void start(std::vector<mx::array> results);

  mx::Stream stream_;
  std::optional<mx::array> started_;
};

} // namespace nightingale::ops
