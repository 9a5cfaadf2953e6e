#pragma once

#include <cstddef>
#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale {

// 24 kHz samples at 16 kHz, under a Hann-windowed sinc of six zero crossings
// that rolls off at 0.99 of the lower Nyquist frequency.
// samples: [n] → [ceil(n * 2 / 3)]
mx::array resample_to_bake_rate(const mx::array& samples, mx::Stream s);

struct SampleRange {
  size_t begin, end;
};

// Where a recording is to be cut so that neither end is 20 dB below its loudest
// moment: from the first to the last of the frames of 2048 samples, one every
// 512, that are louder than that. A recording of nothing but silence is left
// whole.
SampleRange loud_part(const std::vector<float>& samples);

} // namespace nightingale
