#include "nightingale/models/voice/recording.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

namespace {

constexpr size_t kHop = 512;
constexpr size_t kHopsPerFrame = 4;
constexpr double kQuieter = 0.01; // of the loudest power: 20 dB
constexpr double kLeastPower = 1e-10; // what is below counts as this

std::vector<double> hop_energies(const std::vector<float>& samples) {
  std::vector<double> energies((samples.size() + kHop - 1) / kHop);
  for (size_t i = 0; i < samples.size(); ++i) {
    energies[i / kHop] += double(samples[i]) * samples[i];
  }
  return energies;
}

// The power of the frames whose middles are at 0, 512, ...; beyond the
// recording there is silence.
std::vector<double> frame_powers(const std::vector<float>& samples) {
  constexpr size_t half = kHopsPerFrame / 2;
  auto energies = hop_energies(samples);
  std::vector<double> powers(samples.size() / kHop + 1);
  for (size_t frame = 0; frame < powers.size(); ++frame) {
    size_t end = std::min(energies.size(), frame + half);
    double energy = 0;
    for (size_t hop = frame - std::min(frame, half); hop < end; ++hop) {
      energy += energies[hop];
    }
    powers[frame] = std::max(kLeastPower, energy / (kHop * kHopsPerFrame));
  }
  return powers;
}

} // namespace

SampleRange loud_part(const std::vector<float>& samples) {
  auto powers = frame_powers(samples);
  double threshold = kQuieter * *std::ranges::max_element(powers);
  auto is_loud = [=](double power) { return power > threshold; };
  auto first = std::find_if(powers.begin(), powers.end(), is_loud);
  auto last = std::find_if(powers.rbegin(), powers.rend(), is_loud);
  size_t begin = (first - powers.begin()) * kHop;
  size_t end = (powers.rend() - last) * kHop; // a hop behind its middle
  return {begin, std::min(samples.size(), end)};
}

} // namespace nightingale
