#include "bindings.h"
#include "mlx/device.h"
#include "mlx/memory.h"
#include "mlx/ops.h"
#include "mlx/version.h"
#include "nightingale/error.h"
#include "nightingale/io/dtype.h"
#include "nightingale/mlx_internals/cache_check.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/machine.h"

namespace ops = nightingale::ops;

// Whether NumPy can share the elements as they are.
static bool is_ready(const mx::array& x) {
  return x.status() == mx::array::Status::available &&
      x.flags().row_contiguous && x.dtype() == numpy_dtype(x.dtype());
}

static mx::array dense_copy(const mx::array& x) {
  return without_gil([&] {
    auto typed = mx::astype(x, numpy_dtype(x.dtype()), mx::Device::cpu);
    return ops::computed(mx::contiguous(typed, false, mx::Device::cpu));
  });
}

NumpyArray to_numpy(const mx::array& x) {
  auto dense = is_ready(x) ? x : dense_copy(x);
  std::vector<size_t> shape(dense.shape().begin(), dense.shape().end());
  return dense.dtype() == mx::int32 ? share<int32_t>(dense, shape)
                                    : share<float>(dense, shape);
}

mx::Dtype numpy_dtype(mx::Dtype dtype) {
  return mx::issubdtype(dtype, mx::integer) ? mx::int32 : mx::float32;
}

std::optional<mx::Dtype> dtype_from(const std::optional<std::string>& name) {
  if (!name) {
    return std::nullopt;
  }
  for (auto dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    if (*name == nightingale::dtype_name(dtype)) {
      return dtype;
    }
  }
  throw std::invalid_argument(
      "dtype must be float32, float16 or bfloat16, not '" + *name + "'");
}

mx::Stream model_stream(const nightingale::LoadOptions& options) {
  bool gpu = options.device == "gpu";
  if (gpu) {
    nightingale::mlx_internals::disable_mlx_cache_thrash_check();
  }
  return mx::new_thread_unsafe_stream(gpu ? mx::Device::gpu : mx::Device::cpu);
}

const char* device_name(const mx::Stream& stream) {
  return stream.device == mx::Device::cpu ? "cpu" : "gpu";
}

static void bind_machine(nb::module_& m) {
  m.def(
      "set_threads",
      &ops::set_threads,
      nb::arg("count"),
      "Sets the threads of the CPU backend, for the whole process.");
  m.def("threads", &ops::threads, "Threads of the CPU backend.");
  m.def(
      "idle_bytes",
      &ops::idle_bytes,
      "Memory that CPU ops keep for the next ones.");
  m.def(
      "system_allocations",
      &ops::system_allocations,
      "How often CPU ops have asked the system for memory.");
  m.def(
      "release_memory",
      &ops::release_memory,
      "Gives memory that nothing uses back to the system.");
  m.def("simd_name", &ops::simd_name);
  m.def("bf16_name", &ops::bf16_name);
  m.def("blas_name", &ops::blas_name);
  m.def(
      "measure_read_bandwidth",
      &ops::measure_read_bandwidth,
      "Bytes per second, measured now.");
  m.def(
      "measure_best_bandwidth",
      &ops::measure_best_bandwidth,
      "Bytes per second, measured now.");
  m.def(
      "measure_gemm_flops",
      &ops::measure_gemm_flops,
      "Floating-point operations per second, measured now.");
  m.def(
      "set_cache_limit",
      &mx::set_cache_limit,
      nb::arg("bytes"),
      "How much freed memory MLX may keep; gives the limit before.");
  m.def("mlx_version", &mx::version);
  m.def(
      "kernel_launches",
      &ops::kernel_launches,
      "Launches of our GPU kernels in this process.");
  m.def(
      "kernel_source_bytes",
      &ops::kernel_source_bytes,
      "Bytes of the kernel text in these launches, which MLX hashes each "
      "time.");
  m.def(
      "first_kernel_launches",
      &ops::first_kernel_launches,
      "Launches of GPU kernels that were the first of their kind: these "
      "compile.");
  m.def(
      "launched_kernels",
      &ops::launched_kernels,
      "Names of the GPU kernels that have been launched.");
  m.def("gpu_available", [] { return mx::is_available(mx::Device::gpu); });
}

NB_MODULE(_core, m) {
  m.doc() = "Nightingale's C++ core.";
  nb::exception<nightingale::Error>(m, "Error");
  bind_core_call(m);
  bind_checkpoint(m);
  bind_machine(m);
  bind_flow(m);
  bind_testing(m);
  bind_t3(m);
  bind_vocoder(m);
  bind_voice(m);
  bind_engine(m);
}
