#include "nightingale/ops/backend.h"

#include "mlx/transforms.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/testing.h"
#include "nightingale/ops/lanes.h"

namespace nightingale::ops {

bool on_cpu(const mx::Stream& s) {
  return s.device == mx::Device::cpu && !test_hooks::is_cpu_treated_as_gpu();
}

mx::Dtype product_dtype(mx::Dtype weights, int bits, const mx::Stream& s) {
  if (!on_cpu(s)) {
    return weights;
  }
  bool rounded = bits > 0 || weights == mx::bfloat16;
  return rounded && cpu::has_bf16_matrix_units() ? mx::bfloat16 : mx::float32;
}

mx::array computed(mx::array x) {
  mx::eval(x);
  return x;
}

void release_idle_memory(const mx::Stream& s) {
  if (on_cpu(s) && !lanes_work()) {
    cpu::trim();
  }
}

} // namespace nightingale::ops
