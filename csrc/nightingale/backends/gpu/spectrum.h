#pragma once

#include "nightingale/ops/pieces.h"

namespace nightingale::gpu {

// As in nightingale/ops/pieces.h, where kernels run: one launch each.
ops::Fed centred_stft(const ops::Rows& x, bool first, bool last, mx::Stream s);

ops::Fed
waveform(const ops::Rows& x, bool first, bool last, float limit, mx::Stream s);

} // namespace nightingale::gpu
