#pragma once

#include <optional>
#include <string>

#include "mlx/primitives.h"

namespace nightingale::mlx_internals {

// A kernel as MLX names it and puts its text together.
struct GeneratedKernel {
  std::string name;
  std::string text;
};

// Whether it runs a kernel of mx::fast::metal_kernel or cuda_kernel.
bool is_custom_kernel(const mlx::core::Primitive& primitive);

// What MLX will compile for it; nothing for other primitives.
std::optional<GeneratedKernel> generated_kernel(
    const mlx::core::Primitive& primitive);

} // namespace nightingale::mlx_internals
