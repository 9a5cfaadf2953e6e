#include "nightingale/models/voice/recording.h"

#include <doctest/doctest.h>

#include <numbers>

#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr double kPi = std::numbers::pi;

// What the recording is at every 1.5 samples: all of it under a sinc whose six
// zero crossings to either side a Hann window spans.
Values resample_reference(const Values& x) {
  Values y((2 * x.size() + 2) / 3);
  for (size_t j = 0; j < y.size(); ++j) {
    for (size_t i = 0; i < x.size(); ++i) {
      double t = (i - 1.5 * j) * 0.99 * 2 / 3;
      if (std::fabs(t) < 6) {
        double sinc = t == 0 ? 1 : std::sin(kPi * t) / (kPi * t);
        double window = 0.5 + 0.5 * std::cos(kPi * t / 6);
        y[j] += x[i] * sinc * window * 0.99 * 2 / 3;
      }
    }
  }
  return y;
}

std::vector<float> tone(double hz, int samples) {
  std::vector<float> x(samples);
  for (int i = 0; i < samples; ++i) {
    x[i] = std::sin(2 * kPi * hz * i / 24000);
  }
  return x;
}

// Frame by frame in decibels.
SampleRange loud_part_reference(const std::vector<float>& samples) {
  int count = samples.size();
  std::vector<double> levels;
  double loudest = 1e-10;
  for (int middle = 0; middle <= count; middle += 512) {
    double energy = 0;
    for (int i = middle - 1024; i < middle + 1024; ++i) {
      energy += i >= 0 && i < count ? double(samples[i]) * samples[i] : 0;
    }
    levels.push_back(10 * std::log10(std::max(1e-10, energy / 2048)));
    loudest = std::max(loudest, energy / 2048);
  }
  size_t begin = count, end = 0;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i] - 10 * std::log10(loudest) > -20) {
      begin = std::min(begin, 512 * i);
      end = std::min<size_t>(count, 512 * (i + 1));
    }
  }
  return {begin, end};
}

void check(const std::vector<float>& samples) {
  auto found = loud_part(samples), expected = loud_part_reference(samples);
  CHECK(found.begin == expected.begin);
  CHECK(found.end == expected.end);
}

std::vector<float> noise_at(float level, int count, uint32_t seed) {
  auto samples = noise(count, seed);
  for (float& x : samples) {
    x *= level;
  }
  return samples;
}

} // namespace

TEST_CASE("resampling puts a windowed sinc on every 1.5 samples") {
  for (int samples : {1, 2, 3, 4, 5, 22, 23, 24, 1000, 1001, 1002}) {
    CAPTURE(samples);
    auto x = noise_array({samples}, 1);
    auto y = resample_to_bake_rate(x, cpu_stream());
    CHECK(y.shape() == mx::Shape{(2 * samples + 2) / 3});
    CHECK(relative_error(y, resample_reference(values(x))) < 1e-6);
  }
}

TEST_CASE("resampling nothing gives nothing") {
  auto s = cpu_stream();
  auto y = resample_to_bake_rate(mx::zeros({0}, mx::float32, s), s);
  mx::eval(y);
  CHECK(y.shape() == mx::Shape{0});
}

TEST_CASE(
    "resampling keeps tones well below 8 kHz and drops those well above") {
  for (double hz : {100.0, 1000.0, 5500.0}) {
    CAPTURE(hz);
    auto x = array_of(tone(hz, 3000), {3000});
    auto y = floats(resample_to_bake_rate(x, cpu_stream()));
    for (int j = 20; j < 1980; ++j) {
      double expected = std::sin(2 * kPi * hz * j / 16000);
      REQUIRE(std::fabs(y[j] - expected) < 0.01);
    }
  }
  for (double hz : {10500.0, 11500.0}) {
    CAPTURE(hz);
    auto x = array_of(tone(hz, 3000), {3000});
    auto y = floats(resample_to_bake_rate(x, cpu_stream()));
    for (int j = 20; j < 1980; ++j) {
      REQUIRE(std::fabs(y[j]) < 0.01);
    }
  }
}

TEST_CASE("resampling of every layout of the samples") {
  check_views(noise_array({300}, 1), [](auto& v) {
    return resample_to_bake_rate(v, cpu_stream());
  });
}

TEST_CASE("both ends of a recording are cut where it becomes loud") {
  for (int quiet : {0, 100, 512, 5000, 10'240}) {
    for (int loud : {1, 700, 2048, 20'011}) {
      for (float level : {0.0f, 1e-4f, 0.02f, 0.09f}) {
        CAPTURE(quiet);
        CAPTURE(loud);
        CAPTURE(level);
        auto samples = noise_at(level, quiet, 1);
        auto voice = noise_at(0.3f, loud, 2);
        auto after = noise_at(level, 3 * quiet + 77, 3);
        samples.insert(samples.end(), voice.begin(), voice.end());
        samples.insert(samples.end(), after.begin(), after.end());
        check(samples);
      }
    }
  }
}

TEST_CASE("a pause inside a recording stays") {
  auto samples = noise_at(0.3f, 4096, 1);
  samples.resize(40'000);
  auto end = noise_at(0.3f, 4096, 2);
  samples.insert(samples.end(), end.begin(), end.end());
  auto [from, to] = loud_part(samples);
  CHECK(from == 0);
  CHECK(to == samples.size());
}

TEST_CASE("what is loud is loud in relation to the rest") {
  std::vector<float> samples(8192);
  auto voice = noise_at(1e-3f, 8192, 1);
  samples.insert(samples.end(), voice.begin(), voice.end());
  CHECK(loud_part(samples).begin == 8192 - 512);
  // A click far louder than the voice.
  samples.resize(32'768);
  samples[30'000] = 1.0f;
  CHECK(loud_part(samples).begin > 28'000);
}

TEST_CASE("silence is left whole") {
  for (size_t count : {0, 1, 511, 512, 5000}) {
    CAPTURE(count);
    for (float level : {0.0f, 1e-6f}) {
      auto [begin, end] = loud_part(noise_at(level, count, 1));
      CHECK(begin == 0);
      CHECK(end == count);
    }
  }
}
