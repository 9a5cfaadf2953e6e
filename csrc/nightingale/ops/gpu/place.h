#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::gpu {

// {past, capacity} for the kernels that write caches, in memory of the GPU's
// own: on CUDA numbers that the host has made are read over the bus, 1 µs in
// every launch. All layers of a step ask for the same.
mx::array place_of(int past, int capacity, mx::Stream s);

} // namespace nightingale::gpu
