#include "nightingale/ops/machine.h"

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/peak.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/launched_kernels.h"
#include "nightingale/memory.h"

namespace nightingale::ops {

// Forwards a function without arguments to the CPU backend.
#define ON_CPU(name)        \
  decltype(name()) name() { \
    return cpu::name();     \
  }

ON_CPU(threads)
ON_CPU(blas_name)
ON_CPU(bf16_name)
ON_CPU(measure_read_bandwidth)
ON_CPU(measure_best_bandwidth)
ON_CPU(measure_gemm_flops)
ON_CPU(idle_bytes)
ON_CPU(system_allocations)
ON_CPU(failed_ops)
ON_CPU(last_failure)
ON_CPU(stop_ops)

void release_memory() {
  cpu::trim();
  release_freed_memory();
}

void set_threads(int count) {
  cpu::set_threads(count);
}

const char* simd_name() {
  return cpu::simd().name;
}

long kernel_launches() {
  return gpu::kernel_launches();
}

long kernel_source_bytes() {
  return gpu::launch_count().source_bytes;
}

long first_kernel_launches() {
  return gpu::first_launches();
}

std::vector<std::string> launched_kernels() {
  return gpu::launched_kernels();
}

} // namespace nightingale::ops
