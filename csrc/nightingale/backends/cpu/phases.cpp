#include "nightingale/backends/cpu/phases.h"

#include <algorithm>
#include <cmath>

#include "nightingale/backends/cpu/primitive.h"

namespace nightingale::cpu {

using ops::kHarmonics;

mx::array start_phases(const ops::Cycles& cycles) {
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
            // The step is float32, as the sine's argument takes it; the sum is
            // not.
            float step = pitch * static_cast<float>(h + 1) / ops::kSampleRate;
            double sum = cycles[h] + double(step) * ops::kSamplesPerFrame;
            cycles[h] = sum - std::floor(sum);
          }
        }
      },
      s);
  return {out[0], out[1]};
}

} // namespace nightingale::cpu
