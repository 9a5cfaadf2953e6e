#include "nightingale/ops/eval_throttle.h"

#include "mlx/transforms.h"

namespace nightingale::ops {

namespace {

// Once each: several graphs may have a part in common.
std::vector<mx::array> all_results(
    const std::vector<EvalThrottle::Part>& parts) {
  std::vector<mx::array> all;
  for (const auto& part : parts) {
    for (const auto& x : part.results) {
      if (all.empty() || all.back().id() != x.id()) {
        all.push_back(x);
      }
    }
  }
  return all;
}

} // namespace

void EvalThrottle::keep(const mx::array& x) {
  keep(std::vector<Part>{{*this, {x}}});
}

void EvalThrottle::end_step(std::vector<mx::array> results) {
  end_step(std::vector<Part>{{*this, std::move(results)}});
}

void EvalThrottle::keep(const std::vector<Part>& parts) {
  if (queues_ahead(parts.front().throttle.stream_)) {
    start(parts);
  }
}

void EvalThrottle::end_step(const std::vector<Part>& parts) {
  if (queues_ahead(parts.front().throttle.stream_)) {
    start(parts);
  } else {
    mx::eval(all_results(parts));
  }
}

void EvalThrottle::start(const std::vector<Part>& parts) {
  for (const auto& part : parts) {
    if (part.throttle.failure_) {
      std::rethrow_exception(part.throttle.failure_);
    }
  }
  mx::async_eval(all_results(parts));
  try {
    for (const auto& [throttle, results] : parts) {
      if (throttle.started_) {
        throttle.started_->wait();
      }
      throttle.started_ = results.front();
    }
  } catch (...) {
    // MLX reports it once, and not which part was lost.
    for (const auto& part : parts) {
      part.throttle.failure_ = std::current_exception();
    }
    throw;
  }
}

} // namespace nightingale::ops
