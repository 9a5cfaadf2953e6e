#pragma once

#include <optional>
#include <string>

#include "nightingale/mlx_internals/custom_kernel.h"

// MLX's CUDA backend looks for the machine code of a kernel in a folder before
// it compiles one itself. That takes it seconds per kernel in every process,
// because its own headers come first in the text and it does not store the
// result for custom kernels: so we compile them and store the code there.

namespace nightingale::mlx_internals {

// The name under which MLX loads it.
std::string module_name(const GeneratedKernel& kernel);

// The text without MLX's headers, which our kernels do not need; nothing if it
// does not begin with them.
std::optional<std::string> without_headers(const std::string& text);

// Where MLX looks, created if needed; empty if it is not writable.
std::string module_folder();

// Compiles the kernel for `architecture` (sm_90a) with NVRTC, which MLX brings,
// and stores the result where MLX looks, unless it is there already. False if
// any of this fails: MLX then compiles the kernel itself.
bool provide_module(
    const GeneratedKernel& kernel,
    const std::string& architecture);

// False where there was none.
bool remove_module(const GeneratedKernel& kernel);

// An #include line for `text`, stored in a file of `folder` whose name is a
// hash of the text, so that equal texts give equal lines. The text itself if
// the file cannot be written.
std::string include_line(
    const std::string& folder,
    const std::string& name,
    const std::string& text);

} // namespace nightingale::mlx_internals
