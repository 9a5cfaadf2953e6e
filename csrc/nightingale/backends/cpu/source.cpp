#include <algorithm>
#include <cmath>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

using ops::kHarmonics;
using ops::kSamplesPerFrame;

struct NoiseByHarmonic;

// [480, 9] → [9, 480]
const float* by_harmonic(const float* noise) {
  float* turned = scratch<NoiseByHarmonic>(kHarmonics * kSamplesPerFrame);
  for (int h = 0; h < kHarmonics; ++h) {
    for (int k = 0; k < kSamplesPerFrame; ++k) {
      turned[h * kSamplesPerFrame + k] = noise[k * kHarmonics + h];
    }
  }
  return turned;
}

} // namespace

mx::array start_phases(const ops::Cycles& cycles, mx::Stream) {
  std::array<double, 2 * kHarmonics> phases{};
  std::copy(cycles.begin(), cycles.end(), phases.begin() + kHarmonics);
  return mx::array(phases.begin(), {2, kHarmonics}, mx::float64);
}

ops::FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s) {
  int frames = f0.size();
  auto out = make_ops(
      "FramePhases",
      {{{frames, kHarmonics}}, {{2, kHarmonics}, mx::float64}},
      {as_float(f0, s), phases},
      [=](const Arrays& in, Arrays& out) {
        double* cycles = out[1].data<double>();
        std::copy_n(in[1].data<double>(), 2 * kHarmonics, cycles);
        const double* offset = cycles + kHarmonics;
        float* starts = out[0].data<float>();
        for (int frame = 0; frame < frames; ++frame) {
          float pitch = in[0].data<float>()[frame];
          for (int h = 0; h < kHarmonics; ++h) {
            double start = cycles[h] + offset[h];
            *starts++ = static_cast<float>(start - std::floor(start));
            // In float32, as harmonic_source computes it; the sum is not.
            float step = pitch * static_cast<float>(h + 1) / ops::kSampleRate;
            double sum = cycles[h] + double(step) * ops::kSamplesPerFrame;
            cycles[h] = sum - std::floor(sum);
          }
        }
      },
      s);
  return {out[0], out[1]};
}

mx::array harmonic_source(const ops::HarmonicSource& source, mx::Stream s) {
  int frames = source.f0.shape(0);
  return make_op(
      "HarmonicSource",
      {{frames * kSamplesPerFrame}},
      {as_float(source.f0, s),
       as_float(source.starts, s),
       as_float(source.noise, s),
       as_float(source.w, s),
       as_float(source.b, s)},
      [](const Arrays& in, Arrays& out) {
        parallel_for(in[0].shape(0), [&](int frame) {
          int64_t first = int64_t(frame) * kSamplesPerFrame;
          float pitch = in[0].data<float>()[frame];
          float steps[kHarmonics];
          for (int h = 0; h < kHarmonics; ++h) {
            steps[h] = pitch * (h + 1) / ops::kSampleRate;
          }
          bool voiced = pitch > ops::kVoicedAbove;
          HarmonicArgs args;
          args.harmonics = kHarmonics;
          args.samples = kSamplesPerFrame;
          args.starts = in[1].data<float>() + frame * kHarmonics;
          args.steps = steps;
          args.tone = voiced ? 0.1f : 0.0f;
          args.level = voiced ? 0.003f : 0.1f / 3;
          args.noise = by_harmonic(in[2].data<float>() + first * kHarmonics);
          args.w = in[3].data<float>();
          args.bias = in[4].data<float>()[0];
          args.y = out[0].data<float>() + first;
          simd().signal.harmonics(args);
        });
      },
      s);
}

} // namespace nightingale::cpu
