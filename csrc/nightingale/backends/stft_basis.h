#pragma once

#include <array>
#include <cmath>
#include <numbers>

#include "nightingale/ops/spectrum.h"

// The matrices of the short-time Fourier transform, window included.

namespace nightingale::ops {

inline double stft_window(int sample) {
  return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * sample / kStftSize);
}

// [16, 18]: samples to the bins' real and imaginary parts.
inline auto analysis_basis() {
  std::array<float, kStftSize * 2 * kStftBins> basis;
  for (int n = 0; n < kStftSize; ++n) {
    float* row = &basis[n * 2 * kStftBins];
    for (int bin = 0; bin < kStftBins; ++bin) {
      double angle = 2 * std::numbers::pi * bin * n / kStftSize;
      row[bin] = stft_window(n) * std::cos(angle);
      row[kStftBins + bin] = -stft_window(n) * std::sin(angle);
    }
  }
  return basis;
}

// [18, 16]: bins to windowed samples. The imaginary parts of the first and the
// last bin add nothing.
inline auto synthesis_basis() {
  std::array<float, 2 * kStftBins * kStftSize> basis;
  for (int bin = 0; bin < kStftBins; ++bin) {
    bool end = bin == 0 || bin == kStftBins - 1;
    double weight = (end ? 1.0 : 2.0) / kStftSize;
    for (int n = 0; n < kStftSize; ++n) {
      double angle = 2 * std::numbers::pi * bin * n / kStftSize;
      double level = weight * stft_window(n);
      basis[bin * kStftSize + n] = level * std::cos(angle);
      basis[(kStftBins + bin) * kStftSize + n] =
          end ? 0.0 : -level * std::sin(angle);
    }
  }
  return basis;
}

// 1 over the sum of the squared windows at the four samples that a run of four
// frames shares, the first or the last of which may be missing.
inline auto inverse_envelope(bool first_missing, bool last_missing) {
  std::array<float, kStftHop> gains;
  for (int n = 0; n < kStftHop; ++n) {
    double sum = 0;
    for (int block = last_missing; block < kStftOverlap - first_missing;
         ++block) {
      double value = stft_window(block * kStftHop + n);
      sum += value * value;
    }
    gains[n] = 1 / sum;
  }
  return gains;
}

} // namespace nightingale::ops
