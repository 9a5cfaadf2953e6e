// The vocoder's own ops, for 4 s of speech: 200 mel frames, 96,000 samples.

#include "arrays.h"
#include "mlx/ops.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/noise.h"
#include "nightingale/ops/source.h"
#include "nightingale/ops/spectrum.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

constexpr int kFrames = 200, kSamples = 480 * kFrames;
constexpr double kFloat = sizeof(float);

void conv_transpose1d(
    benchmark::State& state,
    int rows,
    int channels,
    int filters,
    int taps,
    int stride) {
  auto x = warm({1, rows, channels}), bias = warm({filters});
  Cold weights({filters, taps, channels}, mx::float32);
  int trim = (taps - stride) / 2;
  ops::ConvTranspose1d shape{stride, trim, taps - stride - trim};
  double size = double(filters) * taps * channels;
  double activations = double(rows) * (channels + stride * filters);
  Work work{(size + activations) * kFloat, 2 * size * rows};
  run(state, work, [&] {
    return ops::conv_transpose1d(
        x, {weights.next(), bias}, shape, cpu_stream());
  });
}

void stft(benchmark::State& state) {
  auto x = warm({1, kSamples + 16});
  double frames = kSamples / 4 + 1;
  Work work{frames * (4 + 18) * kFloat, frames * 2 * 16 * 18};
  run(state, work, [&] { return ops::stft(x, cpu_stream()); });
}

void polar_spectrum(benchmark::State& state) {
  int frames = kSamples / 4 + 1;
  auto x = warm({1, frames, 18});
  Work work{frames * 36 * kFloat, frames * 9.0 * 50};
  run(state, work, [&] { return ops::polar_spectrum(x, cpu_stream()); });
}

void istft(benchmark::State& state) {
  int frames = kSamples / 4 + 1;
  auto x = warm({1, frames, 18});
  Work work{frames * (18 + 4) * kFloat, frames * 2.0 * 16 * 18};
  run(state, work, [&] { return ops::istft(x, {true, true}, cpu_stream()); });
}

void harmonic_source(benchmark::State& state) {
  // The pattern's numbers are below 10 Hz: voiced frames take the sines.
  auto f0 = mx::full({kFrames}, 200.0f, cpu_stream());
  auto starts = warm({kFrames, 9}), noise = warm({kSamples, 9});
  auto w = warm({9}), b = warm({1});
  mx::eval(f0);
  Work work{kSamples * 10 * kFloat, kSamples * 9.0 * 25};
  run(state, work, [&] {
    return ops::harmonic_source({f0, starts, noise, w, b}, cpu_stream());
  });
}

void normal_noise(benchmark::State& state) {
  int columns = 480 * 9;
  double count = double(kFrames) * columns;
  Work work{count * kFloat, count * 100};
  run(state, work, [&] {
    return ops::normal_noise(
        {1, DrawStage::source_noise, 0}, kFrames, columns, cpu_stream());
  });
}

BENCHMARK_CAPTURE(conv_transpose1d, 512x256 by 8, 200, 512, 256, 16, 8)
    ->UseRealTime();
BENCHMARK_CAPTURE(conv_transpose1d, 256x128 by 5, 1600, 256, 128, 11, 5)
    ->UseRealTime();
BENCHMARK_CAPTURE(conv_transpose1d, 128x64 by 3, 8000, 128, 64, 7, 3)
    ->UseRealTime();
BENCHMARK(stft)->UseRealTime();
BENCHMARK(polar_spectrum)->UseRealTime();
BENCHMARK(istft)->UseRealTime();
BENCHMARK(harmonic_source)->UseRealTime();
BENCHMARK(normal_noise)->UseRealTime();

} // namespace

} // namespace nightingale::bench
