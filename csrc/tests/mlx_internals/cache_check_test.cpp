#include "nightingale/mlx_internals/cache_check.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace nightingale;

TEST_CASE("MLX's cache check is off unless the environment sets it") {
  const char* name = "MLX_ENABLE_CACHE_THRASHING_CHECK";
  const char* before = std::getenv(name);
  std::string kept = before ? before : "";
  unsetenv(name);
  mlx_internals::disable_mlx_cache_thrash_check();
  CHECK(std::getenv(name) == std::string("0"));
  setenv(name, "1", 1);
  mlx_internals::disable_mlx_cache_thrash_check();
  CHECK(std::getenv(name) == std::string("1"));
  before ? setenv(name, kept.c_str(), 1) : unsetenv(name);
}
