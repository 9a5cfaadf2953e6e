#pragma once

#include <array>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

constexpr int kHarmonics = 9;
constexpr int kSamplesPerFrame = 480;
constexpr float kSampleRate = 24000.0f;
constexpr float kVoicedAbove = 10.0f; // Hz

// A phase in cycles for each harmonic.
using Cycles = std::array<double, kHarmonics>;

// The phases before the first frame, in the format that frame_phases of the
// same backend reads: on the CPU float64, [2, 9], the cycles that frames have
// added, modulo 1, and those at the start; on a GPU uint64, [9], in units of
// 2^-64 cycles.
mx::array start_phases(const Cycles& cycles, mx::Stream s);

struct FramePhases {
  mx::array starts; // [T, 9], in cycles, before each frame's first sample
  mx::array phases; // after the last frame
};

// The phases of all frames, summed so that the error does not grow with their
// number. f0: [T] Hz
FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s);

struct HarmonicSource {
  mx::array f0; // [T] Hz
  mx::array starts; // [T, 9], as frame_phases gives them
  mx::array noise; // [480 T, 9], unit normal
  mx::array w; // [9]
  mx::array b; // [1]
};

// The vocoder's excitation: tanh of a weighted sum of noise and, in voiced
// frames, of the harmonics of f0 → [480 T]
mx::array harmonic_source(const HarmonicSource& source, mx::Stream s);

} // namespace nightingale::ops
