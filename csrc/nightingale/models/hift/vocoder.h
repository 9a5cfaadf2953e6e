#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/hift/pitch.h"
#include "nightingale/models/hift/resblock.h"
#include "nightingale/models/hift/source.h"

namespace nightingale {

constexpr std::array<int, 3> kUpsamplings{8, 5, 3};
constexpr std::array<int, 3> kKernels{3, 7, 11};

// Frames that must follow one before its own 480 samples are out: the reach of
// the convolutions, of the pitch's and of the source's path together.
constexpr int kVocoderLookahead = 20;

// All that the vocoder carries from one piece of a mel to the next.
struct VocoderState {
  struct Stage {
    UpsamplingTail upsampling;
    ConvTail source_down;
    ResBlockState source_block;
    Frames rows, source; // that wait for each other
    std::array<ResBlockState, kKernels.size()> blocks;
    std::array<Frames, kKernels.size()> branches; // likewise
    bool begun = false;
  };

  PitchState pitch;
  SourceState source;
  Frames samples; // of the source, that coming frames still need
  bool source_begun = false;
  ConvTail before;
  std::array<Stage, kUpsamplings.size()> stages;
  ConvTail after;
  Frames frames; // of the spectrum, before its polar form, likewise
  bool spectrum_begun = false;
};

// HiFT: mel frames to 24 kHz audio. Const after loading.
class Vocoder {
 public:
  // Computes in float32, whatever the file's type, but for the products that
  // `form` is of; its bits are what s3gen_bits makes of them. Names of tensors
  // that are neither the vocoder's nor another part's are put in `unknown`.
  static Vocoder load(
      const std::string& path,
      mx::Stream s,
      std::vector<std::string>* unknown,
      const FilterForm& form = {});

  size_t weight_bytes() const {
    return weight_bytes_;
  }
  const mx::Stream& stream() const {
    return stream_;
  }

  VocoderState begin(const SourceDraws& draws) const;

  // Takes the next frames of a mel, [frames, mels], and gives the samples that
  // are ready, [n]: all that are left when these are the last. A frame's own
  // 480 samples are ready kVocoderLookahead frames later.
  mx::array feed(VocoderState& state, const mx::array& mel, bool last) const;

  // The pitch of a whole mel in Hz: [frames]
  mx::array pitch(const mx::array& mel) const;

 private:
  struct Stage {
    Upsampling upsampling;
    Conv source_down;
    ResBlock source_block;
    std::vector<ResBlock> blocks;
  };

  Vocoder(Weights& weights, const FilterForm& form, mx::Stream s);

  mx::array run(VocoderState& state, const mx::array& mel, bool last) const;
  // The spectrum of the source's next samples.
  Frames source_spectrum(VocoderState& state, const Frames& pitch, bool last)
      const;
  // x: through leaky_relu; what comes out too, by the slope of what follows.
  Frames run(
      size_t stage,
      VocoderState& state,
      const Frames& x,
      const Frames& spectrum,
      bool last) const;
  // x with the source's rows added, those that are ready.
  Frames excited(
      size_t stage,
      VocoderState::Stage& state,
      const Frames& x,
      const Frames& excitation) const;
  Frames waveform(VocoderState& state, const Frames& rows, bool last) const;

  mx::Stream stream_;
  size_t weight_bytes_ = 0;
  PitchPredictor pitch_;
  Source source_;
  Conv before_;
  std::vector<Stage> stages_;
  Conv after_;
};

} // namespace nightingale
