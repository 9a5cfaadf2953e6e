#include "kernel_texts/recorder.h"

#include <stdexcept>

#include "emulator/kernel_text.h"
#include "kernel_texts/generated_text.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/primitives.h"

namespace nightingale::testing {

namespace {

using gpu::Arrays;

// Every GPU takes a SIMD group, however many registers a kernel needs.
constexpr int kSmallestGroup = 32;

Arrays zeros_for(const gpu::Launch& launch) {
  Arrays outputs;
  for (const auto& out : launch.outputs) {
    outputs.push_back(mx::zeros(out.shape, out.dtype, mx::Device::cpu));
  }
  return outputs;
}

Arrays all_inputs(const gpu::Launch& launch) {
  auto inputs = launch.inputs;
  inputs.insert(inputs.end(), launch.state.begin(), launch.state.end());
  return inputs;
}

} // namespace

std::optional<Arrays> LaunchRecorder::replacement(const gpu::Launch& launch) {
  if (launch.threads.back() != kSmallestGroup) {
    throw std::runtime_error(
        std::string(launch.kernel) + " needs groups of " +
        std::to_string(launch.threads.back()) + " threads at least; expected " +
        std::to_string(kSmallestGroup));
  }
  for (int threads : launch.threads) {
    keep(launch, threads);
  }
  return zeros_for(launch);
}

void LaunchRecorder::run(const test_hooks::KernelRun& run) {
  throw std::runtime_error(run.source.name + " ran instead of being recorded");
}

void LaunchRecorder::keep(const gpu::Launch& launch, int threads) {
  auto source = gpu::source_of(launch);
  auto constants = gpu::constants_with(launch, threads);
  auto inputs = all_inputs(launch);
  auto outputs = zeros_for(launch);
  auto key = emulator::kernel_key(source, constants, inputs, outputs);
  if (!seen_.insert(key).second) {
    return;
  }
  auto [name, text] = generated_text(
      {source, constants, inputs, outputs, launch.groups, threads});
  auto [known, fresh] = texts_.emplace(name, text);
  if (!fresh && known->second != text) {
    throw std::runtime_error("two texts have the name " + name);
  }
}

} // namespace nightingale::testing
