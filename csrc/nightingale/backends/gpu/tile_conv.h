#pragma once

#include "nightingale/ops/streaming_conv.h"

namespace nightingale::gpu {

// Whether tile_conv takes it.
bool fits_tile_conv(
    const ops::FrameSpan& x,
    const ops::Filters& filters,
    const ops::StreamingConv& conv);

// Whether it should, on `s`.
bool can_use_tile_conv(
    const ops::FrameSpan& x,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    mx::Stream s);

// ops::conv1d of rows as they are, without Snake, in one launch: no windows are
// laid out. Rows and filters are rounded to float16 as they are multiplied.
// keep: the rows that are kept
ops::StreamOutput tile_conv(
    const ops::FrameSpan& x,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    int keep,
    mx::Stream s);

} // namespace nightingale::gpu
