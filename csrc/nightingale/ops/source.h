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

// Where in its cycle each harmonic is before the first frame, as frame_phases
// of the same backend carries it on.
mx::array start_phases(const Cycles& cycles, mx::Stream s);

struct FramePhases {
  mx::array starts; // [T, 9], in cycles, before each frame's first sample
  mx::array phases; // after the last frame
};

// The cycles of all samples before a frame, added up so that the sum does not
// round however long it gets. f0: [T] Hz
FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s);

// The excitation that the vocoder shapes: tanh of a weighted sum of harmonics
// of f0 where it is voiced, and of noise.
// f0: [T] Hz; starts: [T, 9], each harmonic's phase before the frame's first
// sample, in cycles, initial phase included; noise: [480 T, 9], unit normal;
// w: [9]; b: [1] → [480 T]
mx::array harmonic_source(
    const mx::array& f0,
    const mx::array& starts,
    const mx::array& noise,
    const mx::array& w,
    const mx::array& b,
    mx::Stream s);

} // namespace nightingale::ops
