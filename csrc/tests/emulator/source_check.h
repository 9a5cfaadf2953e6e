#pragma once

#include <vector>

#include "nightingale/backends/gpu/kernel.h"

namespace nightingale::emulator {

// Throws std::runtime_error where a kernel has what MSL has not and clang would
// accept, or what our kernels do without (see docs/design/kernels.md).
void check_source(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants);

} // namespace nightingale::emulator
