#include "nightingale/models/voice/resample.h"

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
