#pragma once

#include <exception>
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

  // The next part of one of several graphs on a stream.
  struct Part {
    EvalThrottle& throttle;
    std::vector<mx::array> results;
  };

  // The same for several graphs, whose launches alternate, so that a GPU runs
  // them side by side. The host waits for the last part of each graph, which
  // may have been started alone or with other graphs than these.
  static void keep(const std::vector<Part>& parts);
  static void end_step(const std::vector<Part>& parts);

 private:
  static void start(const std::vector<Part>& parts);

  mx::Stream stream_;
  std::optional<mx::array> started_;
  std::exception_ptr failure_; // of the device, in a part that was started
};

} // namespace nightingale::ops
