#include "nightingale/models/voice/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "mlx/ops.h"
#include "nightingale/ops/convolution.h"

namespace nightingale {

namespace {

// Every 3 samples become 2.
constexpr int kFrom = 3;
constexpr int kTo = 2;
constexpr double kCutoff = 0.99 * kTo; // of the sinc, where kFrom is the rate
constexpr int kZeroCrossings = 6;
constexpr int kReach = 10; // samples that hold them: ceil(6 * 3 / 1.98)
constexpr int kTaps = 2 * kReach + kFrom;

// A filter for each of the new samples that begin in a run of three.
// → [kTo, kTaps, 1]
mx::array sinc_filters() {
  std::vector<float> filters;
  for (int phase = 0; phase < kTo; ++phase) {
    for (int tap = 0; tap < kTaps; ++tap) {
      double distance = double(tap - kReach) / kFrom - double(phase) / kTo;
      double t = std::clamp<double>(
          distance * kCutoff, -kZeroCrossings, kZeroCrossings);
      double angle = t * std::numbers::pi;
      double sinc = angle == 0 ? 1.0 : std::sin(angle) / angle;
      double root = std::cos(angle / kZeroCrossings / 2);
      filters.push_back(sinc * root * root * kCutoff / kFrom);
    }
  }
  return mx::array(filters.data(), {kTo, kTaps, 1});
}

} // namespace

mx::array resample_to_bake_rate(const mx::array& samples, mx::Stream s) {
  int length = samples.shape(0);
  auto pairs = ops::conv1d(
      mx::reshape(samples, {1, length, 1}, s),
      sinc_filters(),
      {{.stride = kFrom, .pad_left = kReach, .pad_right = kReach + kFrom}},
      s);
  int resampled = (length * kTo + kFrom - 1) / kFrom;
  return mx::slice(mx::reshape(pairs, {-1}, s), {0}, {resampled}, s);
}

} // namespace nightingale
