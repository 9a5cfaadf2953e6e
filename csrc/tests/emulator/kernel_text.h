#pragma once

#include <string>
#include <vector>

#include "nightingale/backends/gpu/kernel.h"

namespace nightingale::emulator {

// A kernel as C++, with the signature that MLX gives it. `typed`: a template
// with address spaces in its types, as for Metal; else a function to run, its
// constants in its body, as for CUDA. Both have the same lines.
std::string kernel_text(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants,
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs,
    bool typed);

// Says which text that is, and is quicker to make.
std::string kernel_key(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants,
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs);

// The values that Metal gives each thread and that kernels may ask for.
bool is_attribute(std::string_view word);

} // namespace nightingale::emulator
