#include "nightingale/models/hift/vocoder.h"

#include <algorithm>
#include <limits>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/s3gen/config.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/eval_throttle.h"
#include "nightingale/ops/spectrum.h"

namespace nightingale {

namespace {

constexpr float kSlope = 0.1f; // before each upsampling
constexpr float kLastSlope = 0.01f;
constexpr float kLimit = 0.99f; // of the samples
constexpr int kEdgeTaps = 7;
constexpr int kSpectrum = 2 * ops::kStftBins;
constexpr std::array<int, 3> kUpsamplingTaps{16, 11, 7};
constexpr std::array<int, 3> kSourceKernels{7, 7, 11};

const std::string kVocoder = "mel2wav.";

int base_channels(const TensorFile& file) {
  std::string name = kVocoder + "conv_pre.bias";
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
  for (const auto& layer : state.pitch.layers) {
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
    add(stage.upsampled, arrays);
    add(stage.source, arrays);
    for (const auto& block : stage.blocks) {
      add(block, arrays);
    }
    for (const auto& branch : stage.branches) {
      add(branch, arrays);
    }
  }
  return arrays;
}

} // namespace

// `format` applies to the residual blocks only, which are nearly all of the
// work. The pitch stays in float32: its errors would add up in the phases.
Vocoder::Vocoder(Weights& weights, const FilterFormat& format, mx::Stream s)
    : stream_(s),
      pitch_(weights, s),
      source_(weights),
      conv_pre_(Conv::take_same(
          weights,
          kVocoder + "conv_pre",
          {base_channels(weights.file()), kMels, kEdgeTaps},
          1,
          {},
          s)),
      conv_post_(Conv::take_same(
          weights,
          kVocoder + "conv_post",
          {kSpectrum, base_channels(weights.file()) / 8, kEdgeTaps},
          1,
          {},
          s)) {
  int channels = base_channels(weights.file());
  for (size_t i = 0; i < kUpsamplings.size(); ++i) {
    std::string number = std::to_string(i);
    int inputs = channels;
    channels /= 2;
    int step = source_frames_per_frame(i);
    int taps = step == 1 ? 1 : 2 * step;
    ops::Conv1d down{
        .stride = step, .pad_left = step / 2, .pad_right = step / 2};
    Stage stage{
        Upsampling::take(
            weights,
            kVocoder + "ups." + number,
            {inputs, channels, kUpsamplingTaps[i]},
            kUpsamplings[i]),
        Conv::take(
            weights,
            kVocoder + "source_downs." + number,
            {channels, kSpectrum, taps},
            down,
            {},
            s),
        ResBlock(
            weights,
            kVocoder + "source_resblocks." + number + ".",
            channels,
            kSourceKernels[i],
            format,
            s),
        {}};
    for (size_t j = 0; j < kKernels.size(); ++j) {
      auto block = std::to_string(i * kKernels.size() + j);
      stage.blocks.emplace_back(
          weights,
          kVocoder + "resblocks." + block + ".",
          channels,
          kKernels[j],
          format,
          s);
    }
    stages_.push_back(std::move(stage));
  }
  weight_bytes_ = weights.nbytes();
}

Vocoder Vocoder::load(
    std::shared_ptr<const TensorFile> file,
    mx::Stream s,
    std::vector<std::string>* unknown,
    const FilterFormat& format) {
  Weights weights(file, mx::float32);
  int bits = s3gen_bits(*file, format.bits, s);
  Vocoder model(weights, {bits, format.halves}, s);
  if (unknown) {
    *unknown = weights.unused({"flow.*", "tokenizer.*", "speaker_encoder.*"});
  }
  return model;
}

VocoderState Vocoder::begin(const SourceDraws& draws) const {
  VocoderState state;
  state.source.draws = draws;
  return state;
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
  x = add_source(i, kept, x, source);

  std::vector<PendingFrames> branches;
  int ready = std::numeric_limits<int>::max();
  for (size_t j = 0; j < stage.blocks.size(); ++j) {
    auto y = stage.blocks[j].forward(kept.blocks[j], x, last, s);
    branches.push_back(join(kept.branches[j], y, s));
    ready = std::min(ready, frame_count(branches.back()));
  }
  if (ready == 0) {
    for (size_t j = 0; j < branches.size(); ++j) {
      kept.branches[j] = to_array(branches[j], s);
    }
    return std::nullopt;
  }
  std::vector<ops::FrameSpan> parts;
  for (const auto& branch : branches) {
    parts.push_back(*branch);
  }
  float slope = i + 1 == stages_.size() ? kLastSlope : kSlope;
  auto mean = ops::mean_frames(parts, ready, slope, s);
  std::copy(mean.kept.begin(), mean.kept.end(), kept.branches.begin());
  return mean.y;
}

Frames Vocoder::add_source(
    size_t stage,
    VocoderState::Stage& state,
    const Frames& x,
    const Frames& fresh) const {
  const auto& s = stream_;
  if (x && !state.started && stage + 1 == stages_.size()) {
    // The model pads the last stage by one mirrored frame.
    state.upsampled = mx::slice(*x, {0, 1, 0}, {1, 2, x->shape(2)}, s);
  }
  state.started = state.started || x;
  auto upsampled = join(state.upsampled, x, s);
  auto source = join(state.source, fresh, s);
  int ready = std::min(frame_count(upsampled), frame_count(source));
  if (ready == 0) {
    state.upsampled = to_array(upsampled, s);
    state.source = to_array(source, s);
    return std::nullopt;
  }
  auto sum = ops::add_frames({*upsampled, *source}, ready, s);
  state.upsampled = sum.kept[0];
  state.source = sum.kept[1];
  return sum.y;
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
