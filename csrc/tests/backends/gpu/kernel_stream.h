#pragma once

#include "emulator/emulator.h"
#include "mlx/device.h"
#include "mlx/stream.h"
#include "nightingale/backends/testing.h"

// Where kernels are tested: on the GPU, or where there is none in the emulator.

namespace nightingale::testing {

inline bool emulated() {
  return !mx::is_available(mx::Device::gpu);
}

inline emulator::MetalEmulator& metal_emulator() {
  static auto* emulator = new emulator::MetalEmulator;
  return *emulator;
}

inline mx::Stream kernel_stream() {
  if (!emulated()) {
    return mx::default_stream(mx::Device::gpu);
  }
  static bool registered =
      (test_hooks::emulate_kernels(&metal_emulator()), true);
  (void)registered;
  return mx::default_stream(mx::Device::cpu);
}

// While it lives, any number of rows is enough for kernels to take several
// tiles of them at once.
class WideRows {
 public:
  WideRows() {
    test_hooks::set_wide_rows(1);
  }
  ~WideRows() {
    test_hooks::set_wide_rows(std::nullopt);
  }
  WideRows(const WideRows&) = delete;
  WideRows& operator=(const WideRows&) = delete;
};

// A smaller GPU, while it lives: the emulator refuses launches beyond it.
class KernelLimits {
 public:
  explicit KernelLimits(emulator::Limits limits)
      : before_(metal_emulator().limits) {
    metal_emulator().limits = limits;
    forget_sizes();
  }
  ~KernelLimits() {
    metal_emulator().limits = before_;
    forget_sizes();
  }
  KernelLimits(const KernelLimits&) = delete;
  KernelLimits& operator=(const KernelLimits&) = delete;

 private:
  // launch() keeps the sizes that were accepted.
  void forget_sizes() {
    if (emulated()) {
      test_hooks::emulate_kernels(&metal_emulator());
    }
  }

  emulator::Limits before_;
};

} // namespace nightingale::testing
