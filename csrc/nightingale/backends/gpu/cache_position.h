#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::gpu {

// {past, capacity} for the kernels that write caches, in memory of the GPU's
// own: on CUDA numbers that the host has made are read over the bus, 1 µs in
// every launch. It is a row of a table that is made once for a capacity: were
// it computed in every step, launches that take it would wait for two others,
// which in a CUDA graph costs each of them more than 1 µs. All layers of a step
// get the same array.
mx::array cache_position(int past, int capacity, mx::Stream s);

} // namespace nightingale::gpu
