#include <doctest/doctest.h>

#include <filesystem>

#include "emulated_gpu.h"
#include "mlx/backend/cuda/cuda.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/mlx_internals/ptx_cache.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

// Machine code of a kernel where MLX looks for it.
Paths modules_of(const std::string& kernel) {
  Paths found;
  for (const auto& file :
       fs::directory_iterator(mlx_internals::module_folder())) {
    if (file.path().filename().string().starts_with(
            "custom_kernel_" + kernel) &&
        file.path().extension() == ".ptx") {
      found.push_back(file.path());
    }
  }
  return found;
}

} // namespace

TEST_CASE("on CUDA a kernel's code lies where MLX looks once it has run") {
  bool cuda = mx::cu::is_available();
  for (const auto& file : cuda ? modules_of("tile_linear") : Paths{}) {
    fs::remove(file);
  }
  // Of a size that no other test has.
  auto x = noise_array({3, 96}, 1, mx::float16);
  auto w = noise_array({48, 96}, 2, mx::float16);
  mx::eval(gpu::tile_linear(x, w, {.dtype = mx::float32}, kernel_stream()));
  if (cuda) {
    CHECK(modules_of("tile_linear").size() == 1);
  }
}

TEST_CASE(
    "launches that differ in nothing but their arrays share a primitive") {
  auto product = [](int rows, int seed, mx::Dtype result) {
    auto x = noise_array({rows, 32}, seed, mx::float16);
    auto w = noise_array({16, 32}, seed + 1, mx::float16);
    return gpu::tile_linear(x, w, {.dtype = result}, kernel_stream());
  };
  for (int rows : {5, 70}) { // the first of an instance is evaluated at once
    mx::eval(product(rows, 1, mx::float32), product(rows, 1, mx::float16));
  }
  auto one = product(5, 1, mx::float32), other = product(5, 3, mx::float32);
  auto longer = product(70, 1, mx::float32);
  auto narrower = product(5, 1, mx::float16);
  CHECK(one.primitive_ptr() == other.primitive_ptr());
  CHECK(one.primitive_ptr() != longer.primitive_ptr());
  CHECK(one.primitive_ptr() != narrower.primitive_ptr());
  mx::eval(one, other, longer, narrower);
  CHECK_FALSE(same_bits(one, other));
  CHECK(relative_error(narrower, values(one)) < 1e-3);
}
