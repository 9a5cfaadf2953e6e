#include "nightingale/models/voice/features.h"

#include <doctest/doctest.h>

#include <numbers>

#include "io/noise_checkpoint.h"
#include "nightingale/family.h"
#include "ops/fourier_reference.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// Noise that is loud at first and faint in the end.
mx::array sound(int samples, uint32_t seed = 1) {
  auto x = noise(samples, seed);
  for (int i = 0; i < samples; ++i) {
    x[i] *= 0.2f * std::pow(10.0f, -3.0f * i / samples);
  }
  return array_of(x, {samples});
}

mx::array tone(double hz, int rate, int samples, double level = 0.5) {
  std::vector<float> x(samples);
  for (int i = 0; i < samples; ++i) {
    x[i] = level * std::sin(kTurn * hz * i / rate);
  }
  return array_of(x, {samples});
}

// Sample i of a recording that is mirrored at both ends.
double mirrored(const Values& x, int i) {
  int last = x.size() - 1;
  return x[i < 0 ? -i : i > last ? 2 * last - i : i];
}

// The filtered spectra of frames under a Hann window that begin at
// first + k * hop. `root`: of magnitudes and not of powers.
Values mel_reference(
    const mx::array& samples,
    int size,
    int hop,
    int first,
    int count,
    const mx::array& filters,
    bool root) {
  Values x = values(samples), weights = values(filters), y;
  for (int k = 0; k < count; ++k) {
    Values frame(size);
    for (int n = 0; n < size; ++n) {
      double window = 0.5 - 0.5 * std::cos(kTurn * n / size);
      frame[n] = window * mirrored(x, first + k * hop + n);
    }
    Values power = power_reference(frame);
    for (int mel = 0; mel < filters.shape(0); ++mel) {
      double sum = 0.0;
      for (size_t bin = 0; bin < power.size(); ++bin) {
        double level = root ? std::sqrt(power[bin] + 1e-9) : power[bin];
        sum += weights[mel * power.size() + bin] * level;
      }
      y.push_back(sum);
    }
  }
  return y;
}

double largest_difference(const mx::array& actual, const Values& expected) {
  Values x = values(actual);
  REQUIRE(x.size() == expected.size());
  double largest = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::fabs(x[i] - expected[i]));
  }
  return largest;
}

int loudest_channel(const mx::array& mel, int frame) {
  Values x = values(mel);
  auto row = x.begin() + frame * mel.shape(1);
  return std::max_element(row, row + mel.shape(1)) - row;
}

struct Filters {
  Values weights;
  int mels, bins;

  Filters(const mx::array& x)
      : weights(values(x)), mels(x.shape(0)), bins(x.shape(1)) {}

  double at(int mel, int bin) const {
    return weights[mel * bins + bin];
  }
  int highest(int mel) const {
    auto row = weights.begin() + mel * bins;
    return std::max_element(row, row + bins) - row;
  }
};

} // namespace

TEST_CASE("prompt_mel is the log of mel magnitudes of mirrored frames") {
  for (int samples : {721, 959, 960, 2999}) {
    CAPTURE(samples);
    auto x = sound(samples);
    auto filters = slaney_filters(24000, 1920, 80);
    Values expected =
        mel_reference(x, 1920, 480, -720, samples / 480, filters, true);
    for (double& value : expected) {
      value = std::log(std::max(value, 1e-5));
    }
    auto mel = prompt_mel(x, cpu_stream());
    CHECK(mel.shape() == mx::Shape{samples / 480, kMels});
    CHECK(largest_difference(mel, expected) < 1e-4);
  }
}

TEST_CASE("prompt_mel of silence is its floor") {
  auto s = cpu_stream();
  for (float x : floats(prompt_mel(mx::zeros({2400}, mx::float32, s), s))) {
    REQUIRE(x == doctest::Approx(std::log(1e-5)));
  }
}

TEST_CASE("prompt_mel hears a tone where it is") {
  // 1 kHz is 15 of Slaney's mels; 81 steps lead to 45.245.
  auto mel = prompt_mel(tone(1000, 24000, 24000), cpu_stream());
  CHECK(mel.shape() == mx::Shape{50, 80});
  CHECK(loudest_channel(mel, 25) == std::lround(15 / (45.245 / 81)) - 1);
}

TEST_CASE("tokenizer_mel is 80 dB of mel powers below the loudest") {
  for (int samples : {201, 480, 2399}) {
    CAPTURE(samples);
    auto x = sound(samples, 2);
    auto filters = slaney_filters(16000, 400, 128);
    Values expected =
        mel_reference(x, 400, 160, -200, samples / 160, filters, false);
    double loudest = -10.0;
    for (double& value : expected) {
      value = std::log10(std::max(value, 1e-10));
      loudest = std::max(loudest, value);
    }
    for (double& value : expected) {
      value = (std::max(value, loudest - 8) + 4) / 4;
    }
    auto mel = tokenizer_mel(x, cpu_stream());
    CHECK(mel.shape() == mx::Shape{samples / 160, 128});
    CHECK(largest_difference(mel, expected) < 1e-4);
  }
}

TEST_CASE("tokenizer_mel is two deep and rises by a half with 20 dB") {
  auto s = cpu_stream();
  // Nothing of silence and of 1 kHz is above 1e-8 of the tone's power.
  auto loud = mx::concatenate(
      {tone(1000, 16000, 8000), mx::zeros({8000}, mx::float32, s)}, 0, s);
  auto mel = values(tokenizer_mel(loud, s));
  auto [low, high] = std::minmax_element(mel.begin(), mel.end());
  CHECK(*high - *low == doctest::Approx(2.0));
  CHECK(mel.back() == doctest::Approx(*low));
  auto faint = mx::multiply(loud, mx::array(0.1f), s);
  for (double& value : mel) {
    value -= 0.5;
  }
  CHECK(largest_difference(tokenizer_mel(faint, s), mel) < 1e-4);
}

TEST_CASE("voice_mel is mel powers, one frame more") {
  for (int samples : {201, 480, 2399}) {
    CAPTURE(samples);
    auto x = sound(samples, 3);
    auto filters = slaney_filters(16000, 400, 40);
    int frames = samples / 160 + 1;
    Values expected = mel_reference(x, 400, 160, -200, frames, filters, false);
    auto mel = voice_mel(x, cpu_stream());
    CHECK(mel.shape() == mx::Shape{frames, 40});
    CHECK(relative_error(mel, expected) < 1e-6);
  }
}

TEST_CASE("kaldi_fbank is the log of pre-emphasised frames less its mean") {
  for (int samples : {400, 559, 560, 3000}) {
    CAPTURE(samples);
    auto sounding = sound(samples, 4);
    Values x = values(sounding), expected;
    Values weights = values(kaldi_filters(16000, 512, 80));
    int frames = (samples - 400) / 160 + 1;
    for (int k = 0; k < frames; ++k) {
      double mean = 0.0;
      for (int n = 0; n < 400; ++n) {
        mean += x[k * 160 + n] / 400;
      }
      Values frame(512);
      for (int n = 0; n < 400; ++n) {
        double here = x[k * 160 + n] - mean;
        double before = x[k * 160 + std::max(0, n - 1)] - mean;
        double hann = 0.5 - 0.5 * std::cos(kTurn * n / 399);
        // The last of the window is 0 but for rounding.
        double window = n == 399 ? 0.0 : std::pow(hann, 0.85);
        frame[n] = window * (here - 0.97 * before);
      }
      Values power = power_reference(frame);
      for (int mel = 0; mel < 80; ++mel) {
        double sum = 0.0;
        for (int bin = 0; bin < 257; ++bin) {
          sum += weights[mel * 257 + bin] * power[bin];
        }
        expected.push_back(std::log(std::max(sum, 0x1p-23)));
      }
    }
    for (int mel = 0; mel < 80; ++mel) {
      double mean = 0.0;
      for (int k = 0; k < frames; ++k) {
        mean += expected[k * 80 + mel] / frames;
      }
      for (int k = 0; k < frames; ++k) {
        expected[k * 80 + mel] -= mean;
      }
    }
    auto mel = kaldi_fbank(sounding, cpu_stream());
    CHECK(mel.shape() == mx::Shape{frames, 80});
    CHECK(largest_difference(mel, expected) < 1e-4);
  }
}

TEST_CASE("kaldi_fbank does not hear an offset, nor how loud all of it is") {
  auto s = cpu_stream();
  auto x = array_of(noise(4000, 5), {4000});
  Values expected = values(kaldi_fbank(x, s));
  auto moved = mx::add(mx::multiply(x, mx::array(0.1f), s), mx::array(0.3f), s);
  CHECK(largest_difference(kaldi_fbank(moved, s), expected) < 2e-3);
  for (float value :
       floats(kaldi_fbank(mx::zeros({4000}, mx::float32, s), s))) {
    REQUIRE(std::fabs(value) < 1e-5);
  }
}

TEST_CASE("features of every layout of the samples") {
  auto s = cpu_stream();
  auto x = sound(1500);
  for (auto* feature : {prompt_mel, tokenizer_mel, voice_mel, kaldi_fbank}) {
    check_views(x, [&](auto& v) { return feature(v, s); });
  }
}

TEST_CASE("a recording too short for a frame is refused") {
  auto message = [](auto feature, int samples) {
    return argument_error_of([&] {
      feature(mx::zeros({samples}, mx::float32, cpu_stream()), cpu_stream());
    });
  };
  for (int samples : {0, 1, 200}) {
    for (auto* feature : {prompt_mel, tokenizer_mel, voice_mel, kaldi_fbank}) {
      CHECK(contains(
          message(feature, samples),
          "has " + std::to_string(samples) + " samples"));
    }
  }
  CHECK(contains(message(prompt_mel, 720), "at least 721"));
  CHECK(contains(message(tokenizer_mel, 200), "at least 201"));
  CHECK(contains(message(voice_mel, 200), "at least 201"));
  CHECK(contains(message(kaldi_fbank, 399), "at least 400"));
}

TEST_CASE("Slaney's filters are librosa's") {
  Filters prompt = slaney_filters(24000, 1920, 80);
  CHECK(prompt.mels == 80);
  CHECK(prompt.bins == 961);
  CHECK(prompt.at(0, 3) == doctest::Approx(0.02666536).epsilon(1e-6));
  CHECK(prompt.at(79, 620) == doctest::Approx(0.002804744).epsilon(1e-6));
  CHECK(prompt.highest(10) == 33);
  CHECK(prompt.highest(40) == 138);
  CHECK(prompt.highest(79) == 616);
  Filters tokenizer = slaney_filters(16000, 400, 128);
  CHECK(tokenizer.at(0, 1) == doctest::Approx(0.012373987).epsilon(1e-6));
  CHECK(tokenizer.at(127, 197) == doctest::Approx(0.0033428406).epsilon(1e-6));
  Filters voice = slaney_filters(16000, 400, 40);
  CHECK(voice.at(20, 43) == doctest::Approx(0.00550284).epsilon(1e-6));
  CHECK(voice.at(39, 190) == doctest::Approx(0.001215154).epsilon(1e-6));
}

TEST_CASE("Slaney's filters have unit area and end at 8 kHz") {
  Filters filters = slaney_filters(24000, 1920, 80);
  double hz_per_bin = 24000.0 / 1920;
  for (int mel = 0; mel < 80; ++mel) {
    double area = 0.0;
    for (int bin = 0; bin < filters.bins; ++bin) {
      area += filters.at(mel, bin) * hz_per_bin;
      if (bin * hz_per_bin >= 8000) {
        REQUIRE(filters.at(mel, bin) < 1e-15);
      }
    }
    // Sampled every 12.5 Hz: the narrowest triangles are three bins to a side.
    CHECK(area == doctest::Approx(1.0).epsilon(0.03));
  }
}

TEST_CASE("Kaldi's filters are torchaudio's") {
  Filters filters = kaldi_filters(16000, 512, 80);
  CHECK(filters.mels == 80);
  CHECK(filters.bins == 257);
  const std::tuple<int, int, double> known[] = {
      {0, 1, 0.50398165},
      {1, 2, 0.8642771},
      {2, 3, 0.8300763},
      {40, 59, 0.9724244},
      {79, 248, 0.9477642}};
  for (auto [mel, bin, weight] : known) {
    CAPTURE(mel);
    CHECK(filters.highest(mel) == bin);
    CHECK(filters.at(mel, bin) == doctest::Approx(weight).epsilon(2e-5));
  }
}

TEST_CASE("Kaldi's filters share every bin between the outermost centres") {
  Filters filters = kaldi_filters(16000, 512, 80);
  auto sum = [&](int bin) {
    double total = 0.0;
    for (int mel = 0; mel < 80; ++mel) {
      total += filters.at(mel, bin);
    }
    return total;
  };
  for (int bin = 2; bin <= 247; ++bin) {
    CHECK(sum(bin) == doctest::Approx(1.0).epsilon(1e-4));
  }
  CHECK(sum(0) == 0.0); // below 20 Hz
  CHECK(sum(256) == 0.0); // 8 kHz
}
