#pragma once

#include "nightingale/ops/pieces.h"

namespace nightingale::gpu {

// As in nightingale/ops/pieces.h, where kernels run: one launch each.
ops::Merged
add_rows(const std::vector<ops::Rows>& parts, int count, mx::Stream s);

ops::Merged mean_rows(
    const std::vector<ops::Rows>& parts,
    int count,
    float slope,
    mx::Stream s);

} // namespace nightingale::gpu
