#include "nightingale/engine/fades.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "nightingale/family.h"

namespace nightingale {

namespace {

constexpr int kBlendFrames = 2;
constexpr int kFadeIn = 480; // samples, after as many of silence
constexpr int kFadeOut = 240; // samples

using FadeInGain = std::array<float, 2 * kFadeIn>;

FadeInGain make_fade_in() {
  FadeInGain gain{};
  double step = -std::numbers::pi / (kFadeIn - 1);
  for (int i = 0; i < kFadeIn; ++i) {
    double angle = i == kFadeIn - 1 ? 0.0 : i * step + std::numbers::pi;
    gain[kFadeIn + i] = float((std::cos(angle) + 1) / 2);
  }
  return gain;
}

} // namespace

std::vector<float>
cross_fade(const std::vector<float>& old, std::vector<float> fresh, int width) {
  int count = old.size() / width;
  for (int row = 0; row < count; ++row) {
    float weight = float((row + 0.5) / count);
    for (int i = row * width; i < (row + 1) * width; ++i) {
      fresh[i] = (1 - weight) * old[i] + weight * fresh[i];
    }
  }
  return fresh;
}

std::vector<float>
blend(const std::vector<float>& mel, std::vector<float> fresh, int settled) {
  int known = mel.size() / kMels, added = fresh.size() / kMels;
  int end = std::min({known, settled + kBlendFrames, settled + added});
  auto split = mel.begin() + size_t(std::min(settled, known)) * kMels;
  auto overlap_end = mel.begin() + size_t(std::max(settled, end)) * kMels;
  std::vector<float> old;
  if (settled < end) {
    old.assign(split, overlap_end);
  }
  std::vector<float> blended(mel.begin(), split);
  fresh = cross_fade(old, std::move(fresh), kMels);
  blended.insert(blended.end(), fresh.begin(), fresh.end());
  return blended;
}

void fade_in(std::vector<float>& samples, int begin) {
  static const FadeInGain gain = make_fade_in();
  int count = std::min<int>(gain.size() - begin, samples.size());
  for (int i = 0; i < count; ++i) {
    samples[i] *= gain[begin + i];
  }
}

void fade_out(std::vector<float>& samples) {
  int count = std::min<int>(kFadeOut, samples.size());
  double step = -1.0 / (count - 1);
  auto* faded = samples.data() + samples.size() - count;
  for (int i = 1; i < count; ++i) {
    faded[i] *= i == count - 1 ? 0.0f : float(i * step + 1);
  }
}

int stretched_length(int frames, double speed) {
  // To even where it is half-way.
  return speed == 1 ? frames : std::max(1, int(std::lrint(frames / speed)));
}

int determined_length(int frames, double speed) {
  return speed == 1 ? frames
                    : std::max(0, int(std::ceil((frames - 0.5) / speed - 0.5)));
}

std::vector<float> stretch(
    const std::vector<float>& mel,
    double speed,
    int begin,
    int end,
    int first) {
  int known = mel.size() / kMels;
  if (speed == 1) {
    int from = std::min(begin - first, known);
    int to = std::clamp(end - first, from, known);
    return {
        mel.begin() + size_t(from) * kMels, mel.begin() + size_t(to) * kMels};
  }
  int last = first + known - 1;
  std::vector<float> stretched;
  stretched.reserve(size_t(std::max(0, end - begin)) * kMels);
  for (int frame = begin; frame < end; ++frame) {
    double place = std::clamp((frame + 0.5) * speed - 0.5, 0.0, double(last));
    int lower = int(place), upper = std::min(lower + 1, last);
    float weight = float(place - lower);
    const float* below = mel.data() + size_t(lower - first) * kMels;
    const float* above = mel.data() + size_t(upper - first) * kMels;
    for (int i = 0; i < kMels; ++i) {
      stretched.push_back((1 - weight) * below[i] + weight * above[i]);
    }
  }
  return stretched;
}

} // namespace nightingale
