#pragma once

#include "nightingale/ops/noise.h"

namespace nightingale::gpu {

// As in nightingale/ops/noise.h: one launch.
mx::array normal_noise(
    uint64_t seed,
    DrawStage stage,
    uint32_t sentence,
    uint32_t first,
    int rows,
    int columns,
    mx::Stream s);

} // namespace nightingale::gpu
