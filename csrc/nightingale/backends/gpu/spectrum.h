#pragma once

#include "nightingale/ops/streaming_conv.h"

namespace nightingale::gpu {

// As in nightingale/ops/streaming_conv.h, where kernels run: one launch each.
ops::StreamOutput
centred_stft(const ops::FrameSpan& x, bool first, bool last, mx::Stream s);

ops::StreamOutput waveform(
    const ops::FrameSpan& x,
    bool first,
    bool last,
    float limit,
    mx::Stream s);

} // namespace nightingale::gpu
