#include "nightingale/engine/host_floats.h"

#include <algorithm>
#include <cmath>

#include "mlx/ops.h"
#include "nightingale/ops/backend.h"

namespace nightingale {

std::vector<float> host_floats(const mx::array& x) {
  bool ready = x.status() == mx::array::Status::available &&
      x.flags().row_contiguous && x.dtype() == mx::float32;
  auto dense = ready ? x
                     : ops::computed(mx::contiguous(
                           mx::astype(x, mx::float32, mx::Device::cpu),
                           false,
                           mx::Device::cpu));
  const float* data = dense.data<float>();
  return std::vector<float>(data, data + dense.size());
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

} // namespace nightingale
