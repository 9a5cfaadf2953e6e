#include "nightingale/ops/fourier.h"

#include <doctest/doctest.h>

#include <numbers>

#include "backends/cpu/thread_count.h"
#include "fourier_reference.h"
#include "io/file_writers.h"
#include "io/noise_checkpoint.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

Values frames_reference(const mx::array& frames) {
  int size = frames.shape(-1);
  Values all = values(frames), y;
  for (auto at = all.begin(); at != all.end(); at += size) {
    Values power = power_reference(Values(at, at + size));
    y.insert(y.end(), power.begin(), power.end());
  }
  return y;
}

} // namespace

TEST_CASE("power_spectrum is the squared magnitude of the Fourier transform") {
  for (int size : {2, 4, 6, 8, 10, 14, 26, 30, 98, 400, 512, 1920}) {
    CAPTURE(size);
    auto x = noise_array({2, size}, 1);
    Values expected = frames_reference(x);
    for (auto [form, power, s] :
         forms(cpu::power_spectrum, reference::power_spectrum)) {
      CAPTURE(form);
      auto y = power(x, s);
      CHECK(y.shape() == mx::Shape{2, size / 2 + 1});
      CHECK(y.dtype() == mx::float32);
      CHECK(relative_error(y, expected) < 1e-7);
    }
  }
}

TEST_CASE("power_spectrum is exact in bins far below the loudest") {
  // A tone 120 dB above noise, of which a float32 transform would lose a tenth.
  for (int size : {400, 512, 1920}) {
    CAPTURE(size);
    auto tone = noise(size, 1);
    for (int n = 0; n < size; ++n) {
      double angle = 2 * std::numbers::pi * 7 * n / size;
      tone[n] = static_cast<float>(std::cos(angle) + 1e-6 * tone[n]);
    }
    auto x = array_of(tone, {1, size});
    auto power = values(ops::power_spectrum(x, cpu_stream()));
    Values expected = frames_reference(x);
    double loudest = expected[7], worst = 0.0, quietest = loudest;
    for (size_t bin = 0; bin < power.size(); ++bin) {
      worst = std::max(worst, std::fabs(power[bin] / expected[bin] - 1));
      quietest = std::min(quietest, expected[bin]);
    }
    CHECK(quietest < 1e-14 * loudest);
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("power_spectrum of any number of frames") {
  auto s = cpu_stream();
  auto x = noise_array({2, 35, 40}, 1);
  auto y = ops::power_spectrum(x, s);
  CHECK(y.shape() == mx::Shape{2, 35, 21});
  CHECK(relative_error(y, frames_reference(x)) < 1e-7);
  auto none = ops::power_spectrum(mx::zeros({0, 40}, mx::float32, s), s);
  mx::eval(none);
  CHECK(none.shape() == mx::Shape{0, 21});
}

TEST_CASE("power_spectrum of every layout of its input") {
  auto x = noise_array({6, 20}, 1);
  for (auto [form, power, s] :
       forms(cpu::power_spectrum, reference::power_spectrum)) {
    CAPTURE(form);
    check_views(x, [&](auto& v) { return power(v, s); });
  }
}

TEST_CASE("power_spectrum does not depend on the number of threads") {
  auto x = noise_array({100, 400}, 1);
  auto run = [&] { return floats(ops::power_spectrum(x, cpu_stream())); };
  std::vector<float> alone;
  {
    ThreadCount one(1);
    alone = run();
  }
  ThreadCount three(3);
  CHECK(same_bits(run(), alone));
}

TEST_CASE("power_spectrum of an odd number of samples is refused") {
  for (int size : {0, 1, 15}) {
    auto message = argument_error_of([&] {
      ops::power_spectrum(
          mx::zeros({2, size}, mx::float32, cpu_stream()), cpu_stream());
    });
    CHECK(contains(message, "found " + std::to_string(size)));
  }
}
