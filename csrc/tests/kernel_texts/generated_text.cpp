#include "kernel_texts/generated_text.h"

#include "mlx/export.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/primitives.h"

namespace nightingale::testing {

// MLX builds the text as it builds a graph node. Where there is no Metal it
// does so only while a function is exported.
mlx_internals::GeneratedKernel generated_text(
    const test_hooks::KernelRun& run) {
  const auto& [source, constants, inputs, outputs, groups, threads] = run;
  gpu::Arrays examples;
  for (const auto& in : inputs) {
    examples.push_back(mx::zeros(in.shape(), in.dtype(), mx::Device::cpu));
  }
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (const auto& out : outputs) {
    shapes.push_back(out.shape());
    dtypes.push_back(out.dtype());
  }
  auto kernel = gpu::metal_kernel(source, gpu::metal_text(source));
  std::optional<mlx_internals::GeneratedKernel> made;
  auto build = [&](const gpu::Arrays& arrays) {
    auto results = kernel(
        arrays,
        shapes,
        dtypes,
        {groups[0] * threads, groups[1], groups[2]},
        {threads, 1, 1},
        constants,
        std::nullopt,
        false,
        mx::Device::gpu);
    made = mlx_internals::generated_kernel(results[0].primitive());
    return results;
  };
  mx::exporter([](const auto&) {}, build)(examples);
  return made.value();
}

} // namespace nightingale::testing
