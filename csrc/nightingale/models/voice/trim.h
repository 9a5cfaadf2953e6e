#pragma once

#include <cstddef>
#include <vector>

namespace nightingale {

struct SampleRange {
  size_t begin, end;
};

// Where a recording is to be cut so that neither end is 20 dB below its loudest
// moment: from the first to the last of the frames of 2048 samples, one every
// 512, that are louder than that. A recording of nothing but silence is left
// whole.
SampleRange loud_part(const std::vector<float>& samples);

} // namespace nightingale
