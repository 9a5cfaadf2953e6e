#include "nightingale/vocoder/vocoder.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/checkpoint/tensor_sizes.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/spectrum.h"

namespace nightingale {

namespace {

constexpr float kSlope = 0.1f; // before each upsampling
constexpr float kLastSlope = 0.01f;
constexpr float kLimit = 0.99f; // of the samples
constexpr int kEdgeTaps = 7;
constexpr int kSpectrum = 2 * ops::kStftBins;
constexpr int kHalfFrame = ops::kStftSize / 2;
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

// Rows [begin, end) of x, last first.
mx::array reversed(const mx::array& x, int begin, int end, mx::Stream s) {
  std::vector<int> order;
  for (int row = end - 1; row >= begin; --row) {
    order.push_back(row);
  }
  int count = order.size();
  return mx::take(x, mx::array(order.begin(), {count}), 1, s);
}

void add(const Piece& piece, std::vector<mx::array>& arrays) {
  if (piece) {
    arrays.push_back(*piece);
  }
}

void add(const ResBlockState& state, std::vector<mx::array>& arrays) {
  for (const auto& layer : state.layers) {
    add(layer.wide.rows, arrays);
    add(layer.narrow.rows, arrays);
    add(layer.residual.rows(), arrays);
  }
}

// Every array that the state holds on to.
std::vector<mx::array> kept_arrays(const VocoderState& state) {
  std::vector<mx::array> arrays;
  for (const auto& tail : state.pitch.tails) {
    add(tail.rows, arrays);
  }
  for (const Piece* piece :
       {&state.samples, &state.before.rows, &state.after.rows, &state.frames}) {
    add(*piece, arrays);
  }
  for (const auto& stage : state.stages) {
    add(stage.upsampling.rows, arrays);
    add(stage.source_down.rows, arrays);
    add(stage.source_block, arrays);
    add(stage.rows.rows(), arrays);
    add(stage.source.rows(), arrays);
    for (const auto& block : stage.blocks) {
      add(block, arrays);
    }
    for (const auto& branch : stage.branches) {
      add(branch.rows(), arrays);
    }
  }
  return arrays;
}

} // namespace

Vocoder::Vocoder(Weights& weights, mx::Stream s)
    : stream_(s),
      pitch_(weights),
      source_(weights),
      before_(Conv::take_same(
          weights,
          kVocoder + "conv_pre",
          {base_channels(weights.file()), kMels, kEdgeTaps})),
      after_(Conv::take_same(
          weights,
          kVocoder + "conv_post",
          {kSpectrum, base_channels(weights.file()) / 8, kEdgeTaps})) {
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
            down),
        ResBlock(
            weights,
            kVocoder + "source_resblocks." + number + ".",
            channels,
            kSourceKernels[i]),
        {}};
    for (size_t j = 0; j < kKernels.size(); ++j) {
      auto block = std::to_string(i * kKernels.size() + j);
      stage.blocks.emplace_back(
          weights,
          kVocoder + "resblocks." + block + ".",
          channels,
          kKernels[j]);
    }
    stages_.push_back(std::move(stage));
  }
  weight_bytes_ = weights.nbytes();
}

Vocoder Vocoder::load(
    const std::string& path,
    mx::Stream s,
    std::vector<std::string>* unknown) {
  auto file = TensorFile::open(path);
  Weights weights(file, mx::float32);
  Vocoder model(weights, s);
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
  Piece rows;
  if (mel.shape(0) > 0) {
    rows = mx::expand_dims(mel, 0, s);
  }
  auto pitch = pitch_.feed(state.pitch, rows, last, s);
  auto spectrum = source_spectrum(state, pitch, last);
  auto x = nightingale::feed(before_, state.before, rows, last, {}, nullptr, s);
  for (size_t i = 0; i < stages_.size(); ++i) {
    bool final_stage = i + 1 == stages_.size();
    x = run(stages_[i], state.stages[i], x, spectrum, final_stage, last);
  }
  if (x) {
    x = ops::leaky_relu(*x, kLastSlope, s);
  }
  x = nightingale::feed(after_, state.after, x, last, {}, nullptr, s);
  auto piece = waveform(state, x, last);
  auto samples =
      piece ? mx::flatten(*piece, s) : mx::zeros({0}, mx::float32, s);
  // With what is kept, so that it does not hold what it was cut from.
  auto made = kept_arrays(state);
  made.push_back(samples);
  mx::eval(made);
  return samples;
}

Piece Vocoder::source_spectrum(
    VocoderState& state,
    const Piece& pitch,
    bool last) const {
  const auto& s = stream_;
  if (!pitch) {
    return std::nullopt;
  }
  auto f0 = mx::contiguous(*pitch, false, s);
  mx::eval(f0);
  std::vector<float> values(f0.data<float>(), f0.data<float>() + f0.size());
  auto fresh = source_.feed(state.source, values, s);
  // The transform's frames are centred: the first and the last reach over the
  // ends, where the samples are mirrored.
  if (!state.source_begun) {
    state.source_begun = true;
    state.samples = reversed(fresh, 1, kHalfFrame + 1, s);
  }
  auto samples = *join(state.samples, fresh, s);
  int count = samples.shape(1);
  if (last) {
    samples = *join(
        samples, reversed(samples, count - 1 - kHalfFrame, count - 1, s), s);
    count = samples.shape(1);
  }
  int frames = ops::stft_frames(count);
  state.samples = cut(samples, frames * ops::kStftHop, count, s);
  return ops::stft(mx::reshape(samples, {1, count}, s), s);
}

Piece Vocoder::run(
    const Stage& stage,
    VocoderState::Stage& state,
    Piece x,
    const Piece& source,
    bool final_stage,
    bool last) const {
  const auto& s = stream_;
  if (x) {
    x = ops::leaky_relu(*x, kSlope, s);
  }
  x = nightingale::feed(stage.upsampling, state.upsampling, x, last, s);
  if (x && final_stage && !state.begun) {
    x = join(cut(*x, 1, 2, s), x, s); // mirrored: one row more than samples
  }
  state.begun = state.begun || x;
  auto excitation = nightingale::feed(
      stage.source_down, state.source_down, source, last, {}, nullptr, s);
  excitation = stage.source_block.feed(state.source_block, excitation, last, s);
  state.rows.push(x, s);
  state.source.push(excitation, s);
  int ready = std::min(state.rows.size(), state.source.size());
  x = state.rows.take(ready, s);
  excitation = state.source.take(ready, s);
  if (x) {
    x = mx::add(*x, *excitation, s);
  }

  ready = std::numeric_limits<int>::max();
  for (size_t i = 0; i < stage.blocks.size(); ++i) {
    auto y = stage.blocks[i].feed(state.blocks[i], x, last, s);
    state.branches[i].push(y, s);
    ready = std::min(ready, state.branches[i].size());
  }
  Piece sum;
  for (auto& branch : state.branches) {
    auto y = branch.take(ready, s);
    sum = sum && y ? mx::add(*sum, *y, s) : y;
  }
  if (sum) {
    sum = mx::divide(*sum, mx::array(float(stage.blocks.size())), s);
  }
  return sum;
}

Piece Vocoder::waveform(VocoderState& state, const Piece& rows, bool last)
    const {
  const auto& s = stream_;
  Piece spectrum;
  if (rows) {
    spectrum = ops::polar_spectrum(*rows, s);
  }
  auto frames = join(state.frames, spectrum, s);
  constexpr int kept = ops::kStftSize / ops::kStftHop - 1;
  bool first = !state.spectrum_begun;
  int count = piece_rows(frames);
  if (count - kept + first + last <= 0) {
    state.frames = frames;
    return std::nullopt;
  }
  state.spectrum_begun = true;
  state.frames = cut(*frames, std::max(0, count - kept), count, s);
  auto samples = ops::istft(*frames, first, last, s);
  return mx::clip(samples, mx::array(-kLimit), mx::array(kLimit), s);
}

} // namespace nightingale
