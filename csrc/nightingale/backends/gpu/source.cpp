#include <cmath>

#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"

namespace nightingale::gpu {

using ops::kHarmonics;

mx::array start_phases(const ops::Cycles& cycles, mx::Stream) {
  std::array<uint64_t, kHarmonics> phases;
  for (int h = 0; h < kHarmonics; ++h) {
    double part = cycles[h] - std::floor(cycles[h]);
    // Twice 63 bits: a part that rounds to 1 would overflow as 2^64.
    phases[h] = static_cast<uint64_t>(part * 0x1p63) << 1;
  }
  return mx::array(phases.begin(), {kHarmonics}, mx::uint64);
}

ops::FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s) {
  int frames = f0.size();
  auto out = launch(
      {.kernel = "phases",
       .inputs = {f0, phases, pair(frames, frames)},
       .outputs =
           {{{frames, kHarmonics}, mx::float32}, {{kHarmonics}, mx::uint64}},
       .groups = {kHarmonics, 1, 1},
       .threads = kChunkThreads},
      s);
  return {out[0], out[1]};
}

mx::array harmonic_source(const ops::HarmonicSource& source, mx::Stream s) {
  const auto& [f0, starts, noise, w, b] = source;
  int samples = f0.size() * ops::kSamplesPerFrame;
  return launch_one(
      {.kernel = "harmonic_source",
       .inputs = {f0, starts, noise, w, b, pair(samples, samples)},
       .outputs = {{{samples}, mx::float32}},
       .groups = {chunks_of(samples), 1, 1},
       .threads = kChunkThreads},
      s);
}

} // namespace nightingale::gpu
