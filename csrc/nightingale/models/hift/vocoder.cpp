#include "nightingale/models/hift/vocoder.h"

#include <algorithm>
#include <limits>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/io/tensor_sizes.h"
#include "nightingale/models/s3gen/quantization.h"
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

// How many spectrum frames of the source make one row of stage i.
int frames_per_row(int stage) {
  int frames = 1;
  for (size_t i = stage + 1; i < kUpsamplings.size(); ++i) {
    frames *= kUpsamplings[i];
  }
  return frames;
}

void add(const Frames& piece, std::vector<mx::array>& arrays) {
  if (piece) {
    arrays.push_back(*piece);
  }
}

void add(const ResBlockState& state, std::vector<mx::array>& arrays) {
  for (const auto& layer : state.layers) {
    add(layer.wide.rows, arrays);
    add(layer.narrow.rows, arrays);
  }
}

// Every array that the state holds on to.
std::vector<mx::array> kept_arrays(const VocoderState& state) {
  std::vector<mx::array> arrays;
  for (const auto& tail : state.pitch.tails) {
    add(tail.rows, arrays);
  }
  for (const Frames* piece :
       {&state.source.phases,
        &state.samples,
        &state.before.rows,
        &state.after.rows,
        &state.frames}) {
    add(*piece, arrays);
  }
  for (const auto& stage : state.stages) {
    add(stage.upsampling.rows, arrays);
    add(stage.source_down.rows, arrays);
    add(stage.source_block, arrays);
    add(stage.rows, arrays);
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

// The blocks alone run in codes or halves: they are nearly all of the work, and
// what stands before the first and behind the last is small. The pitch is
// summed up into phases, where its errors would grow.
Vocoder::Vocoder(Weights& weights, const FilterForm& form, mx::Stream s)
    : stream_(s),
      pitch_(weights, s),
      source_(weights),
      before_(Conv::take_same(
          weights,
          kVocoder + "conv_pre",
          {base_channels(weights.file()), kMels, kEdgeTaps},
          1,
          {},
          s)),
      after_(Conv::take_same(
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
    int step = frames_per_row(i);
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
            form,
            s),
        {}};
    for (size_t j = 0; j < kKernels.size(); ++j) {
      auto block = std::to_string(i * kKernels.size() + j);
      stage.blocks.emplace_back(
          weights,
          kVocoder + "resblocks." + block + ".",
          channels,
          kKernels[j],
          form,
          s);
    }
    stages_.push_back(std::move(stage));
  }
  weight_bytes_ = weights.nbytes();
}

Vocoder Vocoder::load(
    const std::string& path,
    mx::Stream s,
    std::vector<std::string>* unknown,
    const FilterForm& form) {
  auto file = TensorFile::open(path);
  Weights weights(file, mx::float32);
  int bits = s3gen_bits(*file, form.bits, s);
  Vocoder model(weights, {bits, form.halves}, s);
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
  return mx::flatten(*pitch_.feed(state, rows, true, stream_), stream_);
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
  Frames rows;
  if (mel.shape(0) > 0) {
    rows = mx::expand_dims(mel, 0, s);
  }
  auto pitch = pitch_.feed(state.pitch, rows, last, s);
  auto spectrum = source_spectrum(state, pitch, last);
  ops::EvalThrottle throttle(s);
  if (spectrum) {
    throttle.keep(*spectrum);
  }
  auto x = nightingale::feed(before_, state.before, rows, last, {}, s);
  if (x) {
    x = ops::leaky_relu(*x, kSlope, s);
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    x = run(i, state, x, spectrum, last);
    if (x) {
      throttle.keep(*x);
    }
  }
  x = nightingale::feed(after_, state.after, x, last, {}, s);
  auto piece = waveform(state, x, last);
  auto samples =
      piece ? mx::flatten(*piece, s) : mx::zeros({0}, mx::float32, s);
  // With what is kept, so that it does not hold what it was cut from.
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
  auto fresh = source_.feed(state.source, mx::flatten(*pitch, s), s);
  auto samples = ops::joined(state.samples, fresh, s);
  auto output = ops::centred_stft(samples, !state.source_begun, last, s);
  state.source_begun = true;
  state.samples = output.kept;
  return output.y;
}

Frames Vocoder::run(
    size_t i,
    VocoderState& state,
    const Frames& rows,
    const Frames& spectrum,
    bool last) const {
  const auto& s = stream_;
  const auto& stage = stages_[i];
  auto& kept = state.stages[i];
  auto x = nightingale::feed(stage.upsampling, kept.upsampling, rows, last, s);
  auto excitation = nightingale::feed(
      stage.source_down, kept.source_down, spectrum, last, {}, s);
  excitation = stage.source_block.feed(kept.source_block, excitation, last, s);
  x = excited(i, kept, x, excitation);

  std::vector<PendingFrames> branches;
  int ready = std::numeric_limits<int>::max();
  for (size_t j = 0; j < stage.blocks.size(); ++j) {
    auto y = stage.blocks[j].feed(kept.blocks[j], x, last, s);
    branches.push_back(join(kept.branches[j], y, s));
    ready = std::min(ready, count_rows(branches.back()));
  }
  if (ready == 0) {
    for (size_t j = 0; j < branches.size(); ++j) {
      kept.branches[j] = whole(branches[j], s);
    }
    return std::nullopt;
  }
  std::vector<ops::FrameSpan> parts;
  for (const auto& branch : branches) {
    parts.push_back(*branch);
  }
  float slope = i + 1 == stages_.size() ? kLastSlope : kSlope;
  auto mean = ops::mean_rows(parts, ready, slope, s);
  std::copy(mean.kept.begin(), mean.kept.end(), kept.branches.begin());
  return mean.y;
}

Frames Vocoder::excited(
    size_t stage,
    VocoderState::Stage& state,
    const Frames& x,
    const Frames& excitation) const {
  const auto& s = stream_;
  if (x && !state.begun && stage + 1 == stages_.size()) {
    // Mirrored: one row more than samples.
    state.rows = mx::slice(*x, {0, 1, 0}, {1, 2, x->shape(2)}, s);
  }
  state.begun = state.begun || x;
  auto rows = join(state.rows, x, s);
  auto source = join(state.source, excitation, s);
  int ready = std::min(count_rows(rows), count_rows(source));
  if (ready == 0) {
    state.rows = whole(rows, s);
    state.source = whole(source, s);
    return std::nullopt;
  }
  auto sum = ops::add_rows({*rows, *source}, ready, s);
  state.rows = sum.kept[0];
  state.source = sum.kept[1];
  return sum.y;
}

Frames Vocoder::waveform(VocoderState& state, const Frames& fresh, bool last)
    const {
  const auto& s = stream_;
  auto rows = join(state.frames, fresh, s);
  constexpr int overlap = ops::kStftSize / ops::kStftHop - 1;
  bool first = !state.spectrum_begun;
  if (count_rows(rows) - overlap + first + last <= 0) {
    state.frames = whole(rows, s);
    return std::nullopt;
  }
  state.spectrum_begun = true;
  auto output = ops::waveform(*rows, first, last, kLimit, s);
  state.frames = output.kept;
  return output.y;
}

} // namespace nightingale
