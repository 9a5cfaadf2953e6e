#pragma once

#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/streaming_conv.h"

namespace nightingale::gpu {

// One launch.
decltype(reference::apply_epilogue) apply_epilogue;

// `y` after the epilogue as an array of `shape`, with rows from `begin` on of
// `residual` added, if it is given, in place of the epilogue's residual. y:
// [rows, N]
mx::array apply_epilogue(
    const mx::array& y,
    const mx::Shape& shape,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    const std::optional<ops::FrameSpan>& residual,
    int begin,
    mx::Stream s);

} // namespace nightingale::gpu
