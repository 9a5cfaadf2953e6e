#include "nightingale/models/voice/features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/spectrum.h"

namespace nightingale {

namespace {

constexpr double kLowestKaldi = 20.0; // Hz
constexpr double kHighest = 8000.0;

// Slaney's scale: 15 mels up to 1 kHz, then 27 to every factor of 6.4.
constexpr double kLinearTop = 1000.0; // Hz
constexpr double kLinearTopMels = 15.0;
constexpr double kHzPerMel = kLinearTop / kLinearTopMels;
const double kLogStep = std::log(6.4) / 27.0;

double slaney_mels(double hz) {
  return hz < kLinearTop
      ? hz / kHzPerMel
      : kLinearTopMels + std::log(hz / kLinearTop) / kLogStep;
}

double slaney_hz(double mels) {
  return mels < kLinearTopMels
      ? mels * kHzPerMel
      : kLinearTop * std::exp((mels - kLinearTopMels) * kLogStep);
}

float kaldi_mels(float hz) {
  return 1127.0f * std::log(1.0f + hz / 700.0f);
}

} // namespace

mx::array slaney_filters(int rate, int size, int mels) {
  int bins = size / 2 + 1;
  double step = slaney_mels(kHighest) / (mels + 1);
  std::vector<float> filters(mels * bins);
  for (int m = 0; m < mels; ++m) {
    double left = slaney_hz(m * step), centre = slaney_hz((m + 1) * step);
    double right = slaney_hz((m + 2) * step);
    double height = 2 / (right - left);
    for (int bin = 0; bin < bins; ++bin) {
      double hz = double(bin) * rate / size;
      double up = (hz - left) / (centre - left);
      double down = (right - hz) / (right - centre);
      filters[m * bins + bin] = height * std::max(0.0, std::min(up, down));
    }
  }
  return mx::array(filters.data(), {mels, bins});
}

// In float32, as torchaudio computes it: a triangle that reaches a bin only
// with its foot depends on the rounding.
mx::array kaldi_filters(int rate, int size, int mels) {
  int bins = size / 2 + 1;
  auto exact_mels = [](double hz) { return 1127.0 * std::log(1 + hz / 700); };
  float low = exact_mels(kLowestKaldi);
  float step = (exact_mels(kHighest) - exact_mels(kLowestKaldi)) / (mels + 1);
  std::vector<float> filters(mels * bins);
  for (int m = 0; m < mels; ++m) {
    float left = low + m * step, centre = low + (m + 1) * step;
    float right = low + (m + 2) * step;
    for (int bin = 0; bin < bins - 1; ++bin) {
      float mel = kaldi_mels(bin * (float(rate) / size));
      float up = (mel - left) / (centre - left);
      float down = (right - mel) / (right - centre);
      filters[m * bins + bin] = std::max(0.0f, std::min(up, down));
    }
  }
  return mx::array(filters.data(), {mels, bins});
}

namespace {

constexpr int kPromptFrame = 1920; // samples
constexpr int kPromptHop = 480;

constexpr int kBakeFrame = 400;
constexpr int kBakeHop = 160;
constexpr int kTokenizerMels = 128;
constexpr int kVoiceMels = 40;

constexpr int kKaldiFourier = 512;
constexpr int kKaldiMels = 80;
constexpr float kPreEmphasis = 0.97f;

void check_length(const mx::array& samples, int least) {
  int length = samples.shape(0);
  require(
      length >= least,
      "the recording has " + std::to_string(length) +
          " samples, expected at least " + std::to_string(least));
}

// In float32, as the reference computes its windows: quiet bins show the
// difference.
std::vector<float> hann_window(int size, int period) {
  float step = 2 * std::numbers::pi / period;
  std::vector<float> window(size);
  for (int i = 0; i < size; ++i) {
    window[i] = 0.5f - 0.5f * std::cos(i * step);
  }
  return window;
}

mx::array periodic_hann(int size) {
  return mx::array(hann_window(size, size).data(), {size});
}

// A Hann window that reaches 0 at both ends, to the power 0.85.
mx::array povey_window(int size) {
  auto window = hann_window(size, size - 1);
  for (float& x : window) {
    x = std::pow(x, 0.85f);
  }
  return mx::array(window.data(), {size});
}

// `pad` samples more on either side, mirrored at the first and the last one.
mx::array reflect(const mx::array& samples, int pad, mx::Stream s) {
  check_length(samples, pad + 1);
  int last = samples.shape(0) - 1;
  auto mirrored = [&](int from) {
    return mx::take(samples, mx::arange(from, from - pad, -1, s), 0, s);
  };
  return mx::concatenate({mirrored(pad), samples, mirrored(last - 1)}, 0, s);
}

// The first `count` frames. → [count, size]
mx::array frames_of(
    const mx::array& samples,
    int size,
    int hop,
    int count,
    mx::Stream s) {
  auto row = mx::contiguous(samples, false, s);
  return mx::as_strided(row, {count, size}, {hop, 1}, 0, s);
}

// The power spectra of `count` frames around every 10 ms. → [count, 201]
mx::array centred_power(const mx::array& samples, int count, mx::Stream s) {
  auto padded = reflect(samples, kBakeFrame / 2, s);
  auto frames = frames_of(padded, kBakeFrame, kBakeHop, count, s);
  auto windowed = mx::multiply(frames, periodic_hann(kBakeFrame), s);
  return ops::power_spectrum(windowed, s);
}

} // namespace

mx::array prompt_mel(const mx::array& samples, mx::Stream s) {
  auto padded = reflect(samples, (kPromptFrame - kPromptHop) / 2, s);
  int count = samples.shape(0) / kPromptHop;
  auto frames = frames_of(padded, kPromptFrame, kPromptHop, count, s);
  auto windowed = mx::multiply(frames, periodic_hann(kPromptFrame), s);
  auto power = ops::power_spectrum(windowed, s);
  auto magnitude = mx::sqrt(mx::add(power, mx::array(1e-9f), s), s);
  auto filters = slaney_filters(kPromptRate, kPromptFrame, kMels);
  auto mel = ops::linear(magnitude, filters, {}, s);
  return mx::log(mx::maximum(mel, mx::array(1e-5f), s), s);
}

mx::array tokenizer_log_mel(const mx::array& samples, mx::Stream s) {
  auto power = centred_power(samples, samples.shape(0) / kBakeHop, s);
  auto filters = slaney_filters(kBakeRate, kBakeFrame, kTokenizerMels);
  auto mel = ops::linear(power, filters, {}, s);
  return mx::log10(mx::maximum(mel, mx::array(1e-10f), s), s);
}

mx::array
scaled_log_mel(const mx::array& log, const mx::array& loudest, mx::Stream s) {
  auto floor = mx::subtract(loudest, mx::array(8.0f), s);
  auto deep = mx::add(mx::maximum(log, floor, s), mx::array(4.0f), s);
  return mx::multiply(deep, mx::array(0.25f), s);
}

mx::array tokenizer_mel(const mx::array& samples, mx::Stream s) {
  auto log = tokenizer_log_mel(samples, s);
  return scaled_log_mel(log, mx::max(log, s), s);
}

mx::array voice_mel(const mx::array& samples, mx::Stream s) {
  auto power = centred_power(samples, samples.shape(0) / kBakeHop + 1, s);
  auto filters = slaney_filters(kBakeRate, kBakeFrame, kVoiceMels);
  return ops::linear(power, filters, {}, s);
}

mx::array kaldi_fbank(const mx::array& samples, mx::Stream s) {
  check_length(samples, kBakeFrame);
  int count = (samples.shape(0) - kBakeFrame) / kBakeHop + 1;
  auto frames = frames_of(samples, kBakeFrame, kBakeHop, count, s);
  frames = mx::subtract(frames, mx::mean(frames, -1, true, s), s);
  auto before = mx::concatenate(
      {mx::slice(frames, {0, 0}, {count, 1}, s),
       mx::slice(frames, {0, 0}, {count, kBakeFrame - 1}, s)},
      1,
      s);
  auto emphasised =
      mx::subtract(frames, mx::multiply(before, mx::array(kPreEmphasis), s), s);
  auto windowed = mx::multiply(emphasised, povey_window(kBakeFrame), s);
  windowed = mx::pad(
      windowed,
      {{0, 0}, {0, kKaldiFourier - kBakeFrame}},
      mx::array(0.0f),
      "constant",
      s);
  auto power = ops::power_spectrum(windowed, s);
  auto filters = kaldi_filters(kBakeRate, kKaldiFourier, kKaldiMels);
  auto mel = ops::linear(power, filters, {}, s);
  mx::array least(std::numeric_limits<float>::epsilon());
  auto log = mx::log(mx::maximum(mel, least, s), s);
  return mx::subtract(log, mx::mean(log, 0, true, s), s);
}

} // namespace nightingale
