#include "bindings.h"
#include "mlx/device.h"
#include "mlx/memory.h"
#include "mlx/version.h"
#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/peak.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/backends/gpu/kernel.h"

void bind_machine(nb::module_& m) {
  m.def("set_threads", &nightingale::cpu::set_threads, nb::arg("count"));
  m.def("threads", &nightingale::cpu::threads);
  m.def("idle_bytes", &nightingale::cpu::idle_bytes);
  m.def("system_allocations", &nightingale::cpu::system_allocations);
  m.def("simd_name", [] { return nightingale::cpu::simd().name; });
  m.def("has_bf16_matrix_units", &nightingale::cpu::has_bf16_matrix_units);
  m.def("blas_name", &nightingale::cpu::blas_name);
  m.def("measure_read_bandwidth", &nightingale::cpu::measure_read_bandwidth);
  m.def("measure_best_bandwidth", &nightingale::cpu::measure_best_bandwidth);
  m.def("measure_gemm_flops", &nightingale::cpu::measure_gemm_flops);
  m.def(
      "set_cache_limit",
      &mx::set_cache_limit,
      nb::arg("bytes"),
      "How much freed memory MLX may keep; gives the limit before.");
  m.def("mlx_version", &mx::version);
  m.def("kernel_launches", &nightingale::gpu::kernel_launches);
  m.def("gpu_available", [] { return mx::is_available(mx::Device::gpu); });
}
