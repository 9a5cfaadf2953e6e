#include "nightingale/models/hift/vocoder.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <span>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/models/s3gen/config.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/eval_throttle.h"
#include "nightingale/ops/noise.h"
#include "nightingale/ops/spectrum.h"

namespace nightingale {

namespace {

using ops::kHarmonics;
using ops::kSamplesPerFrame;

constexpr float kSlope = 0.1f; // before each upsampling
constexpr float kLastSlope = 0.01f;
constexpr float kLimit = 0.99f; // of the samples
constexpr int kEdgeTaps = 7;
constexpr int kSpectrum = 2 * ops::kStftBins;
constexpr std::array<int, 3> kUpsamplingTaps{16, 11, 7};
constexpr std::array<int, 3> kSourceKernels{7, 7, 11};
constexpr int kPitchTaps = 3;
constexpr double kTurn = 2 * std::numbers::pi;

int base_channels(const TensorFile& file) {
  std::string name = "mel2wav.conv_pre.bias";
  if (!file.contains(name)) {
    throw Error(file.path() + " has no vocoder: it has no " + name);
  }
  int channels = size_of(file, name, 1, 0);
  if (channels < 8 || channels % 8 != 0) {
    throw Error(
        file.path() + ": " + name + " has " + std::to_string(channels) +
        " channels; expected a multiple of 8");
  }
  return channels;
}

// Initial phases in cycles. The first harmonic starts at 0, the others at
// random.
ops::Cycles initial_cycles(const SourceDraws& draws) {
  ops::Cycles cycles{};
  DrawKey key = draw_key({draws.seed, DrawStage::source_phase, draws.sentence});
  for (int h = 0; h < kHarmonics; ++h) {
    if (draws.phase) {
      cycles[h] = (*draws.phase)[h] / kTurn;
    } else if (h > 0) {
      cycles[h] = random_word(key, h, kHarmonics) * 0x1p-32 - 0.5;
    }
  }
  return cycles;
}

mx::array next_noise(const SourceState& state, int frames, mx::Stream s) {
  const auto& draws = state.draws;
  if (draws.noise) {
    int begin = state.frames * kSamplesPerFrame;
    int end = begin + frames * kSamplesPerFrame;
    return mx::slice(*draws.noise, {begin, 0}, {end, kHarmonics}, s);
  }
  DrawPosition position{
      draws.seed,
      DrawStage::source_noise,
      draws.sentence,
      static_cast<uint32_t>(state.frames)};
  auto noise =
      ops::normal_noise(position, frames, kSamplesPerFrame * kHarmonics, s);
  return mx::reshape(noise, {frames * kSamplesPerFrame, kHarmonics}, s);
}

// How many spectrum frames of the source make one frame of a stage.
int source_frames_per_frame(int stage) {
  int frames = 1;
  for (size_t i = stage + 1; i < kUpsamplings.size(); ++i) {
    frames *= kUpsamplings[i];
  }
  return frames;
}

void add(const Frames& frames, std::vector<mx::array>& arrays) {
  if (frames) {
    arrays.push_back(*frames);
  }
}

void add(const ResBlockState& state, std::vector<mx::array>& arrays) {
  for (const auto& layer : state.layers) {
    add(layer.dilated.kept, arrays);
    add(layer.plain.kept, arrays);
  }
}

// Every array in the state.
std::vector<mx::array> kept_arrays(const VocoderState& state) {
  std::vector<mx::array> arrays;
  for (const auto& layer : state.pitch) {
    add(layer.kept, arrays);
  }
  for (const Frames* frames :
       {&state.source.phases,
        &state.samples,
        &state.conv_pre.kept,
        &state.conv_post.kept,
        &state.spectrum}) {
    add(*frames, arrays);
  }
  for (const auto& stage : state.stages) {
    add(stage.upsampling.kept, arrays);
    add(stage.source_down.kept, arrays);
    add(stage.source_block, arrays);
    for (const auto& summand : stage.summands) {
      add(summand, arrays);
    }
    for (const auto& block : stage.blocks) {
      add(block, arrays);
    }
    for (const auto& branch : stage.branches) {
      add(branch, arrays);
    }
  }
  return arrays;
}

// What `merge` makes of the frames that all streams have; the rest of each is
// kept.
template <typename Merge>
Frames merge_ready(
    std::span<Frames> kept,
    const std::vector<Frames>& fresh,
    Merge merge,
    mx::Stream s) {
  std::vector<PendingFrames> pending;
  int ready = std::numeric_limits<int>::max();
  for (size_t i = 0; i < kept.size(); ++i) {
    pending.push_back(join(kept[i], fresh[i], s));
    ready = std::min(ready, frame_count(pending.back()));
  }
  if (ready == 0) {
    for (size_t i = 0; i < kept.size(); ++i) {
      kept[i] = to_array(pending[i], s);
    }
    return std::nullopt;
  }
  std::vector<ops::FrameSpan> parts;
  for (const auto& frames : pending) {
    parts.push_back(*frames);
  }
  ops::MergedFrames merged = merge(parts, ready);
  std::ranges::copy(merged.kept, kept.begin());
  return merged.y;
}

} // namespace

PitchPredictor::PitchPredictor(const LayerReader& predictor)
    : classifier_(predictor.linear(
          {"classifier"},
          {1, predictor.size("condnet.0.bias", 1, 0)})) {
  int width = classifier_.w.columns(), inputs = kMels;
  for (int i = 0; i < kPitchLayers; ++i) {
    // The activations between them count as layers in the names.
    layers_.emplace_back(
        predictor,
        "condnet." + std::to_string(2 * i),
        mx::Shape{width, inputs, kPitchTaps},
        same_padding(kPitchTaps));
    inputs = width;
  }
}

Frames PitchPredictor::forward(
    PitchState& state,
    Frames x,
    bool last,
    mx::Stream s) const {
  for (int i = 0; i < kPitchLayers; ++i) {
    auto& layer = state[i];
    x = nightingale::forward(
        layers_[i],
        layer,
        {join(layer.kept, x, s), last},
        {.epilogue = {.activation = ops::Activation::elu}},
        s);
  }
  if (x) {
    x = mx::abs(classifier_(*x, {}, s), s);
  }
  return x;
}

Source::Source(const LayerReader& hift)
    : w_(ops::computed(mx::reshape(
          hift.tensor("m_source.l_linear.weight", {1, kHarmonics}),
          {kHarmonics},
          mx::Device::cpu))),
      b_(hift.tensor("m_source.l_linear.bias", {1})) {}

mx::array Source::forward(SourceState& state, const mx::array& f0, mx::Stream s)
    const {
  int frames = f0.shape(0);
  if (!state.phases) {
    state.phases = ops::start_phases(initial_cycles(state.draws), s);
  }
  auto next = ops::frame_phases(f0, *state.phases, s);
  auto source = ops::harmonic_source(
      {f0, next.starts, next_noise(state, frames, s), w_, b_}, s);
  state.phases = next.phases;
  state.frames += frames;
  return mx::reshape(source, {1, -1, 1}, s);
}

// `format` applies to the residual blocks only, which are nearly all of the
// work. The pitch stays in float32: its errors would add up in the phases.
Vocoder::Vocoder(
    const LayerReader& hift,
    int channels,
    const FilterFormat& format)
    : stream_(hift.format().stream),
      pitch_(hift.child("f0_predictor")),
      source_(hift),
      conv_pre_(
          hift,
          "conv_pre",
          {channels, kMels, kEdgeTaps},
          same_padding(kEdgeTaps)),
      conv_post_(
          hift,
          "conv_post",
          {kSpectrum, channels / 8, kEdgeTaps},
          same_padding(kEdgeTaps)) {
  auto blocks = hift.as(mx::float32, format.bits, kS3GenRowBits);
  auto take_block = [&](const std::string& list, int index, int taps) {
    return ResBlock(blocks.child(list, index), channels, taps, format.halves);
  };
  for (size_t i = 0; i < kUpsamplings.size(); ++i) {
    std::string number = std::to_string(i);
    int inputs = channels;
    channels /= 2;
    int step = source_frames_per_frame(i);
    int taps = step == 1 ? 1 : 2 * step;
    ops::Conv1d down{
        .stride = step, .pad_left = step / 2, .pad_right = step / 2};
    stages_.push_back(
        {Upsampling(
             hift,
             "ups." + number,
             {inputs, channels, kUpsamplingTaps[i]},
             kUpsamplings[i]),
         Conv(
             hift, "source_downs." + number, {channels, kSpectrum, taps}, down),
         take_block("source_resblocks", i, kSourceKernels[i]),
         {}});
    for (size_t j = 0; j < kKernels.size(); ++j) {
      stages_.back().blocks.push_back(
          take_block("resblocks", i * kKernels.size() + j, kKernels[j]));
    }
  }
}

Vocoder Vocoder::load(
    std::shared_ptr<const TensorFile> file,
    mx::Stream s,
    std::vector<std::string>* unknown,
    const FilterFormat& format) {
  Weights weights(file, mx::float32);
  int bits = s3gen_bits(*file, format.bits, s);
  LayerReader hift(weights, {s}, "mel2wav.");
  Vocoder model(hift, base_channels(*file), {bits, format.halves});
  model.weight_bytes_ = weights.nbytes();
  if (unknown) {
    *unknown = weights.unused({"flow.*", "tokenizer.*", "speaker_encoder.*"});
  }
  return model;
}

mx::array Vocoder::pitch(const mx::array& mel) const {
  PitchState state;
  auto rows = mx::expand_dims(mel, 0, stream_);
  return mx::flatten(*pitch_.forward(state, rows, true, stream_), stream_);
}

mx::array Vocoder::feed(VocoderState& state, const mx::array& mel, bool last)
    const {
  auto samples = run(state, mel, last);
  if (last) {
    ops::release_idle_memory(stream_);
  }
  return samples;
}

mx::array Vocoder::run(VocoderState& state, const mx::array& mel, bool last)
    const {
  const auto& s = stream_;
  Frames frames;
  if (mel.shape(0) > 0) {
    frames = mx::expand_dims(mel, 0, s);
  }
  auto pitch = pitch_.forward(state.pitch, frames, last, s);
  auto spectrum = source_spectrum(state, pitch, last);
  ops::EvalThrottle throttle(s);
  if (spectrum) {
    throttle.keep(*spectrum);
  }
  auto x = forward(conv_pre_, state.conv_pre, frames, last, s);
  if (x) {
    x = ops::leaky_relu(*x, kSlope, s);
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    x = run(i, state, x, spectrum, last);
    if (x) {
      throttle.keep(*x);
    }
  }
  x = forward(conv_post_, state.conv_post, x, last, s);
  auto ready = waveform(state, x, last);
  auto samples =
      ready ? mx::flatten(*ready, s) : mx::zeros({0}, mx::float32, s);
  // With the state, which would otherwise keep the graph alive.
  auto made = kept_arrays(state);
  made.push_back(samples);
  mx::eval(made);
  return samples;
}

Frames Vocoder::source_spectrum(
    VocoderState& state,
    const Frames& pitch,
    bool last) const {
  const auto& s = stream_;
  if (!pitch) {
    return std::nullopt;
  }
  auto fresh = source_.forward(state.source, mx::flatten(*pitch, s), s);
  auto samples = ops::join_frames(state.samples, fresh, s);
  auto output = ops::centred_stft(samples, {!state.source_started, last}, s);
  state.source_started = true;
  state.samples = output.kept;
  return output.y;
}

Frames Vocoder::run(
    size_t i,
    VocoderState& state,
    const Frames& frames,
    const Frames& spectrum,
    bool last) const {
  const auto& s = stream_;
  const auto& stage = stages_[i];
  auto& kept = state.stages[i];
  auto x = forward(stage.upsampling, kept.upsampling, frames, last, s);
  auto source = forward(stage.source_down, kept.source_down, spectrum, last, s);
  source = stage.source_block.forward(kept.source_block, source, last, s);
  bool last_stage = i + 1 == stages_.size();
  if (x && !kept.started && last_stage) {
    // The model pads the last stage by one mirrored frame.
    kept.summands[0] = mx::slice(*x, {0, 1, 0}, {1, 2, x->shape(2)}, s);
  }
  kept.started = kept.started || x;
  auto add = [&](const std::vector<ops::FrameSpan>& parts, int count) {
    return ops::add_frames(parts, count, s);
  };
  x = merge_ready(kept.summands, {x, source}, add, s);

  std::vector<Frames> branches;
  for (size_t j = 0; j < stage.blocks.size(); ++j) {
    branches.push_back(stage.blocks[j].forward(kept.blocks[j], x, last, s));
  }
  auto mean = [&](const std::vector<ops::FrameSpan>& parts, int count) {
    return ops::mean_frames(parts, count, last_stage ? kLastSlope : kSlope, s);
  };
  return merge_ready(kept.branches, branches, mean, s);
}

Frames Vocoder::waveform(VocoderState& state, const Frames& fresh, bool last)
    const {
  const auto& s = stream_;
  auto frames = join(state.spectrum, fresh, s);
  bool first = !state.spectrum_started;
  if (frame_count(frames) - ops::kStftOverlap + 1 + first + last <= 0) {
    state.spectrum = to_array(frames, s);
    return std::nullopt;
  }
  state.spectrum_started = true;
  auto output = ops::waveform(*frames, {first, last}, kLimit, s);
  state.spectrum = output.kept;
  return output.y;
}

} // namespace nightingale
