#pragma once

#include "nightingale/ops/backend.h"

// The vocoder's short-time Fourier transform: frames of 16 samples under a
// periodic Hann window, 4 samples apart; 9 bins.

namespace nightingale::ops {

constexpr int kStftSize = 16;
constexpr int kStftHop = 4;
constexpr int kStftBins = kStftSize / 2 + 1;

// Whole frames in `samples`.
constexpr int stft_frames(int samples) {
  return samples < kStftSize ? 0 : (samples - kStftSize) / kStftHop + 1;
}

// Every whole frame of x: [B, n] → [B, stft_frames(n), 18], the bins' real
// parts first, then the imaginary ones. Pads nothing.
mx::array stft(const mx::array& x, mx::Stream s);

// The bins of log-magnitudes and of phases before their sine: magnitude
// min(exp(x[..., : 9]), 100), phase sin(x[..., 9 :]) radians.
// x: [..., 18] → [..., 18] as stft gives them
mx::array polar_spectrum(const mx::array& x, mx::Stream s);

// The samples that the frames overlap in, 4 for each run of four frames, each
// divided by the sum of the squared windows that reach it. `first` and `last`
// say that a frame before the first, or after the last, is missing: such a run
// of three counts too. x: [B, N, 18] → [B, 4 * (N - 3 + first + last)]
mx::array istft(const mx::array& x, bool first, bool last, mx::Stream s);

} // namespace nightingale::ops
