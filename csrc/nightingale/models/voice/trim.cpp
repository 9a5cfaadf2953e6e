#include "nightingale/models/voice/trim.h"

#include <algorithm>

namespace nightingale {

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
