#pragma once

#include "kernel_stream.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::testing {

// While it lives, models on kernel_stream() run as on a GPU, also where that is
// a CPU stream with the emulator.
class EmulatedGpu {
 public:
  EmulatedGpu() {
    test_hooks::treat_cpu_as_gpu(emulated());
  }
  ~EmulatedGpu() {
    test_hooks::treat_cpu_as_gpu(false);
  }
  EmulatedGpu(const EmulatedGpu&) = delete;
  EmulatedGpu& operator=(const EmulatedGpu&) = delete;
};

// `w` quantized, in the layout that kernels read.
inline ops::Matrix quantized_for_kernels(const mx::array& w, int bits) {
  EmulatedGpu gpu;
  return ops::Matrix::quantized(w, bits, kernel_stream());
}

} // namespace nightingale::testing
