#pragma once

#include <optional>
#include <string>

// Machine code of kernels where MLX's CUDA backend looks for it before it
// compiles one itself, which takes it seconds a kernel in every process: its
// own headers come first in the text, and what it compiled of ours it does not
// keep.

namespace nightingale::gpu {

// A kernel as MLX puts it together, and names it.
struct GeneratedKernel {
  std::string name;
  std::string text;
};

// The name under which MLX loads it.
std::string module_name(const GeneratedKernel& kernel);

// The text without MLX's headers, of which our kernels need none; nothing if it
// does not begin with them.
std::optional<std::string> without_headers(const std::string& text);

// Where MLX looks, made if need be; empty where nothing can be written there.
std::string module_folder();

// Has NVRTC, which MLX brings, compile the kernel for `architecture` (sm_90a)
// and puts the result where MLX looks, unless it is there already. False where
// anything of this is amiss: MLX then does it its own way.
bool provide_module(
    const GeneratedKernel& kernel,
    const std::string& architecture);

// False where there was none.
bool remove_module(const GeneratedKernel& kernel);

} // namespace nightingale::gpu
