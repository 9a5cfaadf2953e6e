#include "nightingale/ops/source.h"

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

mx::array harmonic_source(
    const mx::array& f0,
    const mx::array& starts,
    const mx::array& noise,
    const mx::array& w,
    const mx::array& b,
    mx::Stream s) {
  int frames = f0.shape(0);
  return make_op(
      "HarmonicSource",
      {{frames * kSamplesPerFrame}},
      {as_float(f0, s),
       as_float(starts, s),
       as_float(noise, s),
       as_float(w, s),
       as_float(b, s)},
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
