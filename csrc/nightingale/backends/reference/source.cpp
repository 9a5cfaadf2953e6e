#include <numbers>

#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array harmonic_source(const ops::HarmonicSource& in, mx::Stream s) {
  using namespace ops;
  const auto& [f0, starts, noise, w, b] = in;
  constexpr float pi = std::numbers::pi_v<float>;
  int frames = f0.shape(0);
  auto number = [](float value) { return mx::array(value); };
  auto pitch = mx::reshape(f0, {frames, 1, 1}, s);
  auto harmonic = mx::arange(1, kHarmonics + 1, 1, mx::float32, s);
  auto step =
      mx::divide(mx::multiply(pitch, harmonic, s), number(kSampleRate), s);
  auto sample = mx::reshape(
      mx::arange(1, kSamplesPerFrame + 1, 1, mx::float32, s),
      {1, kSamplesPerFrame, 1},
      s);
  auto cycles = mx::add(
      mx::reshape(starts, {frames, 1, kHarmonics}, s),
      mx::multiply(sample, step, s),
      s);
  cycles = mx::subtract(cycles, mx::floor(cycles, s), s);
  auto sine = mx::sin(mx::multiply(cycles, number(2 * pi), s), s);
  auto voiced = mx::greater(pitch, number(kVoicedAbove), s);
  auto tone =
      mx::where(voiced, mx::multiply(sine, number(0.1f), s), number(0.0f), s);
  auto level = mx::where(voiced, number(0.003f), number(0.1f / 3), s);
  auto hiss = mx::multiply(
      mx::reshape(noise, {frames, kSamplesPerFrame, kHarmonics}, s), level, s);
  auto mixed =
      mx::sum(mx::multiply(mx::add(tone, hiss, s), w, s), -1, false, s);
  auto source = mx::tanh(mx::add(mixed, b, s), s);
  return mx::reshape(source, {frames * kSamplesPerFrame}, s);
}

} // namespace nightingale::reference
