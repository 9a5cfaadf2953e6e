#include "nightingale/ops/backend.h"

#include <cstdlib>

#include "mlx/transforms.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/matrix_units.h"

namespace nightingale::ops {

namespace {

bool cpu_as_gpu = false;

} // namespace

bool on_cpu(const mx::Stream& s) {
  return s.device == mx::Device::cpu && !cpu_as_gpu;
}

void treat_cpu_as_gpu(bool yes) {
  cpu_as_gpu = yes;
}

void disable_mlx_cache_thrash_check() {
  setenv("MLX_ENABLE_CACHE_THRASHING_CHECK", "0", /* overwrite */ 0);
}

mx::Dtype product_dtype(mx::Dtype weights, const mx::Stream& s) {
  if (!on_cpu(s)) {
    return weights;
  }
  bool units = weights == mx::bfloat16 && cpu::has_bf16_matrix_units();
  return units ? mx::bfloat16 : mx::float32;
}

mx::array computed(mx::array x) {
  mx::eval(x);
  return x;
}

void release_idle_memory(const mx::Stream& s) {
  if (on_cpu(s)) {
    cpu::trim();
  }
}

} // namespace nightingale::ops
