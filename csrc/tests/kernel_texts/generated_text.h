#pragma once

#include "nightingale/backends/testing.h"
#include "nightingale/mlx_internals/custom_kernel.h"

namespace nightingale::testing {

// What MLX compiles on Metal for a run of a kernel, and the name it gives it.
// Of the arrays only shapes and types matter.
mlx_internals::GeneratedKernel generated_text(const test_hooks::KernelRun& run);

} // namespace nightingale::testing
