#include "nightingale/ops/backend.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

using namespace nightingale;

TEST_CASE("MLX's caches forget unless the environment has them throw") {
  const char* name = "MLX_ENABLE_CACHE_THRASHING_CHECK";
  const char* before = std::getenv(name);
  std::string kept = before ? before : "";
  unsetenv(name);
  ops::disable_mlx_cache_thrash_check();
  CHECK(std::getenv(name) == std::string("0"));
  setenv(name, "1", 1);
  ops::disable_mlx_cache_thrash_check();
  CHECK(std::getenv(name) == std::string("1"));
  before ? setenv(name, kept.c_str(), 1) : unsetenv(name);
}
