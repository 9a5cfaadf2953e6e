#include "nightingale/models/hift/source.h"

#include <numbers>

#include "mlx/ops.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/noise.h"

namespace nightingale {

namespace {

using ops::kHarmonics;
using ops::kSamplesPerFrame;

constexpr double kTurn = 2 * std::numbers::pi;

// Initial phases in cycles. The first harmonic starts at 0, the others at
// random.
ops::Cycles initial_cycles(const SourceDraws& draws) {
  ops::Cycles cycles{};
  DrawKey key = draw_key({draws.seed, DrawStage::source_phase, draws.sentence});
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
  DrawPosition position{
      draws.seed,
      DrawStage::source_noise,
      draws.sentence,
      static_cast<uint32_t>(state.frames)};
  auto noise =
      ops::normal_noise(position, frames, kSamplesPerFrame * kHarmonics, s);
  return mx::reshape(noise, {frames * kSamplesPerFrame, kHarmonics}, s);
}

} // namespace

Source::Source(Weights& weights)
    : w_(ops::computed(mx::reshape(
          weights.take(
              "mel2wav.m_source.l_linear.weight",
              {1, kHarmonics},
              mx::float32),
          {kHarmonics},
          mx::Device::cpu))),
      b_(weights.take("mel2wav.m_source.l_linear.bias", {1}, mx::float32)) {}

mx::array Source::forward(SourceState& state, const mx::array& f0, mx::Stream s)
    const {
  int frames = f0.shape(0);
  if (!state.phases) {
    state.phases = ops::start_phases(initial_cycles(state.draws), s);
  }
  auto next = ops::frame_phases(f0, *state.phases, s);
  auto source = ops::harmonic_source(
      {f0, next.starts, next_noise(state, frames, s), w_, b_}, s);
  state.phases = next.phases;
  state.frames += frames;
  return mx::reshape(source, {1, -1, 1}, s);
}

} // namespace nightingale
