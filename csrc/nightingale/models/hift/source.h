#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "nightingale/models/weights.h"
#include "nightingale/ops/source.h"

namespace nightingale {

// Random inputs of the harmonic source: drawn by the seed, or given.
struct SourceDraws {
  uint64_t seed = 0;
  uint32_t sentence = 0;
  // Initial phases of the harmonics in radians, and unit normal noise for every
  // sample of the signal, [samples, 9].
  std::optional<std::array<float, ops::kHarmonics>> phase = std::nullopt;
  std::optional<mx::array> noise = std::nullopt;
};

struct SourceState {
  SourceDraws draws;
  std::optional<mx::array> phases; // of the harmonics, once started
  int frames = 0; // so far
};

// Pitch to the excitation signal of the vocoder.
class Source {
 public:
  explicit Source(Weights& weights);

  // f0: [frames], the pitch of the next frames in Hz → [1, 480 * frames, 1]
  mx::array forward(SourceState& state, const mx::array& f0, mx::Stream s)
      const;

 private:
  mx::array w_, b_;
};

} // namespace nightingale
