#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/hift/streaming_layers.h"
#include "nightingale/ops/source.h"

namespace nightingale {

constexpr int kPitchLayers = 5;

using PitchState = std::array<ConvState, kPitchLayers>;

// Mel frames to their pitch.
class PitchPredictor {
 public:
  explicit PitchPredictor(const LayerReader& predictor);

  // mel: [1, n, mels] → Hz of the frames that are ready: [1, m, 1]
  Frames forward(PitchState& state, Frames mel, bool last, mx::Stream s) const;

 private:
  std::vector<Conv> layers_;
  Linear classifier_;
};

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
  explicit Source(const LayerReader& hift);

  // f0: [frames], the pitch of the next frames in Hz → [1, 480 * frames, 1]
  mx::array forward(SourceState& state, const mx::array& f0, mx::Stream s)
      const;

 private:
  mx::array w_, b_;
};

constexpr std::array<int, 3> kUpsamplings{8, 5, 3};
constexpr std::array<int, 3> kKernels{3, 7, 11};

// Frames that must follow one before its own 480 samples are complete: the
// receptive field of the pitch predictor and of the source's path together.
constexpr int kVocoderLookahead = 20;

// The vocoder's state between two chunks of a mel.
struct VocoderState {
  struct Stage {
    UpsamplingState upsampling;
    ConvState source_down;
    ResBlockState source_block;
    std::array<Frames, 2> summands; // upsampled and source, not yet added
    std::array<ResBlockState, kKernels.size()> blocks;
    std::array<Frames, kKernels.size()> branches; // not yet averaged
    bool started = false;
  };

  PitchState pitch;
  SourceState source;
  Frames samples; // of the source, that later frames need
  bool source_started = false;
  ConvState conv_pre;
  std::array<Stage, kUpsamplings.size()> stages;
  ConvState conv_post;
  Frames spectrum; // before its polar form, that later samples need
  bool spectrum_started = false;
};

// HiFT: mel frames to 24 kHz audio. Const after loading.
class Vocoder {
 public:
  // Computes in float32, whatever the file's type, except for the filters that
  // `format` applies to; s3gen_bits checks its bits. `unknown` gets the names
  // of tensors that no part of S3Gen has.
  static Vocoder load(
      std::shared_ptr<const TensorFile> file,
      mx::Stream s,
      std::vector<std::string>* unknown,
      const FilterFormat& format = {});

  // The same weights for ops on `s`, a stream of the same device.
  Vocoder on(mx::Stream s) const {
    Vocoder moved = *this;
    moved.stream_ = s;
    return moved;
  }

  size_t weight_bytes() const {
    return weight_bytes_;
  }
  const mx::Stream& stream() const {
    return stream_;
  }

  VocoderState begin(const SourceDraws& draws) const {
    VocoderState state;
    state.source.draws = draws;
    return state;
  }

  // The samples that are ready after the next frames of a mel: [frames, mels] →
  // [n]. A frame's own 480 samples are ready kVocoderLookahead frames later, or
  // when `last` ends the mel.
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

  Vocoder(const LayerReader& hift, int channels, const FilterFormat& format);

  mx::array run(VocoderState& state, const mx::array& mel, bool last) const;
  // The spectrum of the source's next samples.
  Frames source_spectrum(VocoderState& state, const Frames& pitch, bool last)
      const;
  // x and the result are after leaky_relu, each with the slope of what follows.
  Frames run(
      size_t stage,
      VocoderState& state,
      const Frames& x,
      const Frames& spectrum,
      bool last) const;
  Frames waveform(VocoderState& state, const Frames& fresh, bool last) const;

  mx::Stream stream_;
  size_t weight_bytes_ = 0;
  PitchPredictor pitch_;
  Source source_;
  Conv conv_pre_;
  std::vector<Stage> stages_;
  Conv conv_post_;
};

} // namespace nightingale
