#include "nightingale/vocoder/source.h"

#include <cmath>
#include <numbers>

#include "mlx/ops.h"
#include "nightingale/ops/noise.h"

namespace nightingale {

namespace {

using ops::kHarmonics;
using ops::kSamplesPerFrame;

constexpr double kTurn = 2 * std::numbers::pi;

// Initial phases in cycles. The first harmonic starts at 0, the others anywhere
// in one turn.
std::array<double, kHarmonics> initial_cycles(const SourceDraws& draws) {
  std::array<double, kHarmonics> cycles{};
  DrawKey key =
      draw_key(draws.seed, DrawStage::source_phase, draws.sentence, 0);
  for (int h = 0; h < kHarmonics; ++h) {
    if (draws.phase) {
      cycles[h] = (*draws.phase)[h] / kTurn;
    } else if (h > 0) {
      cycles[h] = random_word(key, h, kHarmonics) * 0x1p-32 - 0.5;
    }
  }
  return cycles;
}

mx::array next_noise(const SourceState& state, int frames, mx::Stream s) {
  const auto& draws = state.draws;
  if (draws.noise) {
    int begin = state.frames * kSamplesPerFrame;
    int end = begin + frames * kSamplesPerFrame;
    return mx::slice(*draws.noise, {begin, 0}, {end, kHarmonics}, s);
  }
  auto noise = ops::normal_noise(
      draws.seed,
      DrawStage::source_noise,
      draws.sentence,
      state.frames,
      frames,
      kSamplesPerFrame * kHarmonics,
      s);
  return mx::reshape(noise, {frames * kSamplesPerFrame, kHarmonics}, s);
}

} // namespace

Source::Source(Weights& weights)
    : w_(mx::reshape(
          weights.take(
              "mel2wav.m_source.l_linear.weight",
              {1, kHarmonics},
              mx::float32),
          {kHarmonics},
          mx::Device::cpu)),
      b_(weights.take("mel2wav.m_source.l_linear.bias", {1}, mx::float32)) {}

mx::array Source::feed(
    SourceState& state,
    const std::vector<float>& f0,
    mx::Stream s) const {
  int frames = f0.size();
  auto offset = initial_cycles(state.draws);
  std::vector<float> starts;
  starts.reserve(frames * kHarmonics);
  for (float pitch : f0) {
    for (int h = 0; h < kHarmonics; ++h) {
      double cycles = state.cycles[h] + offset[h];
      starts.push_back(static_cast<float>(cycles - std::floor(cycles)));
      // The step is float32, as the sine's argument takes it; the sum is not.
      float step = pitch * static_cast<float>(h + 1) / ops::kSampleRate;
      double sum = state.cycles[h] + double(step) * kSamplesPerFrame;
      state.cycles[h] = sum - std::floor(sum);
    }
  }
  auto source = ops::harmonic_source(
      mx::array(f0.begin(), {frames}),
      mx::array(starts.begin(), {frames, kHarmonics}),
      next_noise(state, frames, s),
      w_,
      b_,
      s);
  state.frames += frames;
  return mx::reshape(source, {1, -1, 1}, s);
}

} // namespace nightingale
