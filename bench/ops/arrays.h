#pragma once

#include <vector>

#include "mlx/array.h"
#include "mlx/stream.h"
#include "nightingale/ops/backend.h"

namespace nightingale::bench {

inline mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

// Small numbers in a buffer of their own: what the op before left in cache.
mx::array warm(const mx::Shape& shape, mx::Dtype dtype = mx::float32);

// Arrays side by side in one buffer of 1 GB: by the time one comes round again
// it has left every cache, as the weights and caches of 30 layers have.
class Cold {
 public:
  Cold(const mx::Shape& shape, mx::Dtype dtype);

  const mx::array& next();

 private:
  std::vector<mx::array> arrays_;
  size_t at_ = 0;
};

} // namespace nightingale::bench
