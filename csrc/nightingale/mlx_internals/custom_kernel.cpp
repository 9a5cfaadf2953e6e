#include "nightingale/mlx_internals/custom_kernel.h"

#include <string_view>

#include "mlx/fast_primitives.h"
#include "nightingale/mlx_internals/version.h"

namespace nightingale::mlx_internals {

bool is_custom_kernel(const mlx::core::Primitive& primitive) {
  return std::string_view(primitive.name()) == "CustomKernel";
}

std::optional<GeneratedKernel> generated_kernel(
    const mlx::core::Primitive& primitive) {
  if (!is_custom_kernel(primitive)) {
    return std::nullopt;
  }
  // MLX does not export the type information that a dynamic_cast needs.
  auto state =
      static_cast<const mlx::core::fast::CustomKernel&>(primitive).state();
  return GeneratedKernel{std::get<0>(state), std::get<1>(state)};
}

} // namespace nightingale::mlx_internals
