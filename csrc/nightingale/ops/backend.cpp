#include "nightingale/ops/backend.h"

#include "nightingale/ops/cpu/buffers.h"
#include "nightingale/ops/cpu/matrix_units.h"

namespace nightingale::ops {

mx::Dtype product_dtype(mx::Dtype weights, const mx::Stream& s) {
  if (!on_cpu(s)) {
    return weights;
  }
  bool units = weights == mx::bfloat16 && cpu::has_bf16_matrix_units();
  return units ? mx::bfloat16 : mx::float32;
}

void release_idle_memory(const mx::Stream& s) {
  if (on_cpu(s)) {
    cpu::trim();
  }
}

} // namespace nightingale::ops
