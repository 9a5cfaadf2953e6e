#pragma once

#include "kernel_stream.h"
#include "nightingale/ops/backend.h"

namespace nightingale::testing {

// While it lives, models on kernel_stream() run as on a GPU, also where that is
// a CPU stream with the emulator.
class EmulatedGpu {
 public:
  EmulatedGpu() {
    ops::treat_cpu_as_gpu(emulated());
  }
  ~EmulatedGpu() {
    ops::treat_cpu_as_gpu(false);
  }
  EmulatedGpu(const EmulatedGpu&) = delete;
  EmulatedGpu& operator=(const EmulatedGpu&) = delete;
};

} // namespace nightingale::testing
