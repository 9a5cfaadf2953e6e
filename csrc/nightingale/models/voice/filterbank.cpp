#include "nightingale/models/voice/filterbank.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace nightingale {

namespace {

constexpr double kLowestKaldi = 20.0; // Hz
constexpr double kHighest = 8000.0;

// Slaney's scale: 15 mels up to 1 kHz, then 27 to every factor of 6.4.
constexpr double kLinearTop = 1000.0; // Hz
constexpr double kLinearTopMels = 15.0;
constexpr double kHzPerMel = kLinearTop / kLinearTopMels;
const double kLogStep = std::log(6.4) / 27.0;

double slaney_mels(double hz) {
  return hz < kLinearTop
      ? hz / kHzPerMel
      : kLinearTopMels + std::log(hz / kLinearTop) / kLogStep;
}

double slaney_hz(double mels) {
  return mels < kLinearTopMels
      ? mels * kHzPerMel
      : kLinearTop * std::exp((mels - kLinearTopMels) * kLogStep);
}

float kaldi_mels(float hz) {
  return 1127.0f * std::log(1.0f + hz / 700.0f);
}

} // namespace

mx::array slaney_filters(int rate, int size, int mels) {
  int bins = size / 2 + 1;
  double step = slaney_mels(kHighest) / (mels + 1);
  std::vector<float> filters(mels * bins);
  for (int m = 0; m < mels; ++m) {
    double left = slaney_hz(m * step), centre = slaney_hz((m + 1) * step);
    double right = slaney_hz((m + 2) * step);
    double height = 2 / (right - left);
    for (int bin = 0; bin < bins; ++bin) {
      double hz = double(bin) * rate / size;
      double up = (hz - left) / (centre - left);
      double down = (right - hz) / (right - centre);
      filters[m * bins + bin] = height * std::max(0.0, std::min(up, down));
    }
  }
  return mx::array(filters.data(), {mels, bins});
}

// In float32, as torchaudio computes it: a triangle that reaches a bin only
// with its foot depends on the rounding.
mx::array kaldi_filters(int rate, int size, int mels) {
  int bins = size / 2 + 1;
  auto exact_mels = [](double hz) { return 1127.0 * std::log(1 + hz / 700); };
  float low = exact_mels(kLowestKaldi);
  float step = (exact_mels(kHighest) - exact_mels(kLowestKaldi)) / (mels + 1);
  std::vector<float> filters(mels * bins);
  for (int m = 0; m < mels; ++m) {
    float left = low + m * step, centre = low + (m + 1) * step;
    float right = low + (m + 2) * step;
    for (int bin = 0; bin < bins - 1; ++bin) {
      float mel = kaldi_mels(bin * (float(rate) / size));
      float up = (mel - left) / (centre - left);
      float down = (right - mel) / (right - centre);
      filters[m * bins + bin] = std::max(0.0f, std::min(up, down));
    }
  }
  return mx::array(filters.data(), {mels, bins});
}

} // namespace nightingale
