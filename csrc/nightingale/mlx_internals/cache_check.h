#pragma once

#include <cstdlib>

namespace nightingale::mlx_internals {

// To be called before the first stream on a GPU. On CUDA MLX counts the misses
// of its caches of graphs and attention plans over the life of the process and
// throws after some hundreds of them, which texts of many lengths reach. After
// this call the caches only drop the oldest entry, unless the variable is set
// in the environment.
inline void disable_mlx_cache_thrash_check() {
  setenv("MLX_ENABLE_CACHE_THRASHING_CHECK", "0", /* overwrite */ 0);
}

} // namespace nightingale::mlx_internals
