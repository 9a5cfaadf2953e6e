#include "nightingale/ops/eval_throttle.h"

#include "mlx/transforms.h"

namespace nightingale::ops {

void EvalThrottle::keep(const mx::array& x) {
  if (queues_ahead(stream_)) {
    start({x});
  }
}

void EvalThrottle::end_step(std::vector<mx::array> results) {
  if (queues_ahead(stream_)) {
    start(std::move(results));
  } else {
    mx::eval(std::move(results));
  }
}

void EvalThrottle::start(std::vector<mx::array> results) {
  auto next = results.front();
  mx::async_eval(std::move(results));
  if (started_) {
    started_->wait();
  }
  started_ = next;
}

} // namespace nightingale::ops
