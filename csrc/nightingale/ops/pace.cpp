#include "nightingale/ops/pace.h"

#include "mlx/transforms.h"

namespace nightingale::ops {

void Pace::keep(const mx::array& x) {
  if (!queues_ahead(stream_)) {
    return;
  }
  mx::async_eval(x);
  if (started_) {
    started_->wait();
  }
  started_ = x;
}

} // namespace nightingale::ops
