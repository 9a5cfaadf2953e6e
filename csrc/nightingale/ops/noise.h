#pragma once

#include "nightingale/ops/backend.h"
#include "nightingale/ops/random.h"

namespace nightingale::ops {

// Unit normal draws for positions [first, first + rows), `columns` of them at
// each: element [r, c] is made of word c of draw_key(seed, stage, sentence,
// first + r), whatever is drawn beside it. → [rows, columns] float32
mx::array normal_noise(
    uint64_t seed,
    DrawStage stage,
    uint32_t sentence,
    uint32_t first,
    int rows,
    int columns,
    mx::Stream s);

} // namespace nightingale::ops
