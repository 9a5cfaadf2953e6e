#pragma once

#include "nightingale/ops/pieces.h"

namespace nightingale::gpu {

// Whether tile_conv takes it.
bool fits_tile_conv(
    const ops::Rows& x,
    const ops::Filters& filters,
    const ops::PieceConv& conv);

// Whether it should, on `s`.
bool takes_tile_conv(
    const ops::Rows& x,
    const ops::Filters& filters,
    const ops::PieceConv& conv,
    mx::Stream s);

// ops::conv1d of rows as they are, without Snake, in one launch: no windows are
// laid out. Rows and filters are rounded to float16 as they are multiplied.
// keep: the rows that are kept
ops::Fed tile_conv(
    const ops::Rows& x,
    const ops::Filters& filters,
    const ops::PieceConv& conv,
    int keep,
    mx::Stream s);

} // namespace nightingale::gpu
