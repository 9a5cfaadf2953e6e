#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// The squared magnitudes of the Fourier transform of real frames, taken in
// double precision: a float32 transform drowns the quiet bins of a loud frame.
// GPUs have no such type, so that it runs on the CPU whatever `s` is.
// frames: [..., n], n even → [..., n / 2 + 1] float32
mx::array power_spectrum(const mx::array& frames, mx::Stream s);

} // namespace nightingale::ops
