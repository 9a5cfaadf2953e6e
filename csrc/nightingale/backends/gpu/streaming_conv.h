#pragma once

#include "nightingale/ops/streaming_conv.h"

namespace nightingale::gpu {

// As in nightingale/ops/streaming_conv.h, where kernels run: one launch each.
ops::Merged
add_rows(const std::vector<ops::FrameSpan>& parts, int count, mx::Stream s);

ops::Merged mean_rows(
    const std::vector<ops::FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s);

} // namespace nightingale::gpu
