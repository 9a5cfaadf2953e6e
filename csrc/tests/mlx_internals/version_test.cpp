#include "nightingale/mlx_internals/version.h"

#include <doctest/doctest.h>

#include <string>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/mlx_internals/ptx_cache.h"

using namespace nightingale;
namespace mx = mlx::core;

TEST_CASE("the MLX that is loaded is the one whose internals we rely on") {
  INFO(
      "csrc/nightingale/mlx_internals was written for MLX ",
      mlx_internals::kMlxVersion,
      ": see version.h there for what to check after an update");
  CHECK(std::string(mx::version()) == mlx_internals::kMlxVersion);
}

TEST_CASE("on CUDA a custom kernel has the text and name that we expect") {
  if (!mx::cu::is_available()) {
    return;
  }
  INFO("MLX has changed: compare csrc/nightingale/mlx_internals with its code");
  auto kernel = mx::fast::cuda_kernel("probe", {"x"}, {"y"}, "y[0] = x[0];");
  auto y = kernel(
      {mx::ones({8})},
      {{8}},
      {mx::float32},
      {32, 1, 1},
      {32, 1, 1},
      {},
      std::nullopt,
      false,
      mx::Device::gpu)[0];
  REQUIRE(mlx_internals::is_custom_kernel(y.primitive()));
  auto generated = mlx_internals::generated_kernel(y.primitive());
  REQUIRE(generated);
  CHECK(generated->name.starts_with("custom_kernel_probe"));
  CHECK(generated->text.find("y[0] = x[0];") != std::string::npos);
  CHECK(mlx_internals::without_headers(generated->text));
}

TEST_CASE("primitives of MLX's own ops are no custom kernels") {
  auto sum = mx::add(mx::ones({8}), mx::ones({8}));
  CHECK_FALSE(mlx_internals::is_custom_kernel(sum.primitive()));
  CHECK_FALSE(mlx_internals::generated_kernel(sum.primitive()));
}
