#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/ops/gpu/tile_linear.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

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
