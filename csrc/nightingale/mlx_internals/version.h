#pragma once

#include "mlx/version.h"

// This folder relies on details of MLX that its interface does not promise:
// the layout of its unexported class CustomKernel (custom_kernel.h), the text
// it makes of a CUDA kernel and where it caches the compiled one (ptx_cache.h),
// and an environment variable (cache_check.h). All were read from the version
// below. After a change of the version in pyproject.toml, compare them with
// MLX's sources, run the tests of this folder on a GPU, then change it here.

namespace nightingale::mlx_internals {

constexpr const char* kMlxVersion = "0.32.4";
static_assert(
    MLX_VERSION_NUMERIC == 32004,
    "csrc/nightingale/mlx_internals was written for MLX 0.32.4");

} // namespace nightingale::mlx_internals
