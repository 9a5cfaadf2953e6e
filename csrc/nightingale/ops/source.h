#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

constexpr int kHarmonics = 9;
constexpr int kSamplesPerFrame = 480;
constexpr float kSampleRate = 24000.0f;
constexpr float kVoicedAbove = 10.0f; // Hz

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
