#pragma once

#include "nightingale/ops/backend.h"

// Mel filters: the weights that triangles evenly spaced on a mel scale give to
// the bins of a spectrum of `size` samples at `rate` Hz.
// → [mels, size / 2 + 1] float32

namespace nightingale {

// Slaney's scale, linear below 1 kHz, from 0 to 8 kHz; every triangle's area
// over frequency is 1.
mx::array slaney_filters(int rate, int size, int mels);

// The scale that Kaldi shares with HTK, from 20 Hz to 8 kHz; every triangle is
// 1 high. It is linear over mels, and the last bin counts nowhere.
mx::array kaldi_filters(int rate, int size, int mels);

} // namespace nightingale
