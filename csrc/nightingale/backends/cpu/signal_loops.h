#pragma once

#include <cstdint>

#include "nightingale/ops/random.h"

namespace nightingale::cpu {

// One frame of the vocoder's excitation: y[k] = tanh(bias + sum over harmonics
// of w * (tone * sin(2 pi (start + (k + 1) * step)) + level * noise)).
struct HarmonicArgs {
  int harmonics;
  int samples; // a multiple of 16
  const float* starts; // cycles
  const float* steps; // cycles per sample
  float tone;
  float level;
  const float* noise; // [harmonics, samples]
  const float* w;
  float bias;
  float* y;
};

// Row stride of an analysis basis: whole vectors of any width.
constexpr int kAnalysisStride = 32;

// The inner loops of the vocoder's spectra and source and of noise.
struct SignalLoops {
  // y[f, 18] = x[4 f : 4 f + 16] · basis [16, kAnalysisStride]
  void (*analyse)(const float* x, int frames, const float* basis, float* y);
  // y[f, 16] = x[f, 18] · basis [18, 16]
  void (*synthesise)(const float* x, int frames, const float* basis, float* y);
  // ops::polar_spectrum of [frames, 18]
  void (*polar)(const float* x, int frames, float* y);

  void (*harmonics)(const HarmonicArgs& args);

  // random_word(key, i, count) for all i.
  void (*random_words)(DrawKey key, uint32_t count, uint32_t* words);
  // A unit normal number of each word.
  void (*normals)(const uint32_t* words, int count, float* y);
};

} // namespace nightingale::cpu
