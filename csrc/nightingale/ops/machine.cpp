#include "nightingale/ops/machine.h"

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/peak.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/backends/gpu/kernel.h"

namespace nightingale::ops {

void set_threads(int count) {
  cpu::set_threads(count);
}

int threads() {
  return cpu::threads();
}

const char* simd_name() {
  return cpu::simd().name;
}

const char* blas_name() {
  return cpu::blas_name();
}

bool has_bf16_matrix_units() {
  return cpu::has_bf16_matrix_units();
}

double measure_read_bandwidth() {
  return cpu::measure_read_bandwidth();
}

double measure_best_bandwidth() {
  return cpu::measure_best_bandwidth();
}

double measure_gemm_flops() {
  return cpu::measure_gemm_flops();
}

size_t idle_bytes() {
  return cpu::idle_bytes();
}

uint64_t system_allocations() {
  return cpu::system_allocations();
}

long kernel_launches() {
  return gpu::kernel_launches();
}

} // namespace nightingale::ops
