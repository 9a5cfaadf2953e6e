#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale {

// 24 kHz samples at 16 kHz, under a Hann-windowed sinc of six zero crossings
// that rolls off at 0.99 of the lower Nyquist frequency.
// samples: [n] → [ceil(n * 2 / 3)]
mx::array resample_to_bake_rate(const mx::array& samples, mx::Stream s);

} // namespace nightingale
