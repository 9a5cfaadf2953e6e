#pragma once

#include <array>
#include <optional>
#include <vector>

#include "nightingale/backends/gpu/kernel.h"

// What tests put in place of a GPU. The library itself never sets any of it.

namespace nightingale::test_hooks {

// One run of a kernel in the emulator.
struct KernelRun {
  const gpu::KernelSource& source;
  const std::vector<gpu::Constant>& constants;
  // Evaluated and row-major; the state, which is written in place, comes last.
  const std::vector<mx::array>& inputs;
  std::vector<mx::array>& outputs; // allocated
  std::array<int, 3> groups;
  int threads;
};

class KernelEmulator {
 public:
  virtual ~KernelEmulator() = default;

  // Throws std::invalid_argument if it refuses the size of the groups.
  virtual void run(const KernelRun& run) = 0;

  // What gpu::has_tiles() is for the GPU it emulates.
  virtual bool has_tiles() const = 0;

  // Called for each launch as its node of the graph is built, if it runs at
  // once or later. inputs: with the state
  virtual void built(
      const std::vector<mx::array>& inputs,
      const std::vector<mx::array>& outputs) {
    (void)inputs, (void)outputs;
  }

  // What launch() returns in place of a launch, which then never runs; nothing
  // where it is to run.
  virtual std::optional<std::vector<mx::array>> replacement(
      const gpu::Launch&) {
    return std::nullopt;
  }
};

// From now on CPU streams run kernels in `emulator`; nullptr: they run none.
// Also forgets the group sizes that kernels were run with.
void emulate_kernels(KernelEmulator* emulator);
KernelEmulator* kernel_emulator();

// From now on ops treat CPU streams as if they were a GPU's.
void treat_cpu_as_gpu(bool yes);
bool is_cpu_treated_as_gpu();

// From now on as many rows are enough for kernels to take several tiles of them
// at once; nothing: as many as a GPU needs (gpu::kWideRows).
void set_wide_rows(std::optional<int> rows);
std::optional<int> wide_rows();

// What runs a launch in the emulator when it is evaluated.
std::shared_ptr<mx::Primitive> emulated_launch(
    const gpu::KernelSource& source,
    const gpu::Launch& launch,
    int threads,
    mx::Stream s);
bool is_emulated_launch(const mx::Primitive& primitive);

} // namespace nightingale::test_hooks
