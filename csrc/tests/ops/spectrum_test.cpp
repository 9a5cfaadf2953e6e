#include "nightingale/ops/spectrum.h"

#include <doctest/doctest.h>

#include <complex>
#include <numbers>

#include "arrays.h"
#include "backends/cpu/thread_count.h"
#include "fourier_reference.h"
#include "io/file_writers.h"
#include "io/noise_checkpoint.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double window(int n) {
  return 0.5 * (1 - std::cos(kTurn * n / 16));
}

// Frames of one signal, by the definition.
Values stft_reference(const Values& x) {
  Values y;
  for (size_t begin = 0; begin + 16 <= x.size(); begin += 4) {
    for (int part = 0; part < 2; ++part) {
      for (int bin = 0; bin < 9; ++bin) {
        std::complex<double> sum = 0;
        for (int n = 0; n < 16; ++n) {
          sum +=
              x[begin + n] * window(n) * std::polar(1.0, -kTurn * bin * n / 16);
        }
        y.push_back(part == 0 ? sum.real() : sum.imag());
      }
    }
  }
  return y;
}

// The whole signal that frames overlap in, 16 + 4 (N - 1) samples, where its
// ends are kept and the division is left out: sums and squared windows.
struct Overlapped {
  Values sums, squares;
};

Overlapped overlap(const Values& spectrum) {
  int frames = spectrum.size() / 18;
  Overlapped y{Values(4 * frames + 12), Values(4 * frames + 12)};
  for (int f = 0; f < frames; ++f) {
    const double* bins = &spectrum[f * 18];
    for (int n = 0; n < 16; ++n) {
      double sample = bins[0] + (n % 2 ? -bins[8] : bins[8]);
      for (int bin = 1; bin < 8; ++bin) {
        double angle = kTurn * bin * n / 16;
        sample +=
            2 * (bins[bin] * std::cos(angle) - bins[9 + bin] * std::sin(angle));
      }
      y.sums[4 * f + n] += sample / 16 * window(n);
      y.squares[4 * f + n] += window(n) * window(n);
    }
  }
  return y;
}

// Frames before the first and after the last are missing on purpose; a run of
// four then begins one frame early.
Values istft_reference(const Values& spectrum, bool first, bool last) {
  int frames = spectrum.size() / 18, hops = frames - 3 + first + last;
  auto whole = overlap(spectrum);
  Values y;
  for (int i = 0; i < 4 * hops; ++i) {
    int at = 12 - 4 * first + i;
    y.push_back(whole.sums[at] / whole.squares[at]);
  }
  return y;
}

mx::array frames_of(const mx::array& x, int begin, int end) {
  return mx::contiguous(rows_of(x, begin, end), false, cpu_stream());
}

Values joined(Values a, const Values& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

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

TEST_CASE("stft is the windowed Fourier transform of every whole frame") {
  for (int samples : {16, 17, 19, 20, 100, 1203, 5000}) {
    CAPTURE(samples);
    auto x = noise_array({1, samples}, 1);
    Values expected = stft_reference(values(x));
    for (auto [backend, stft, s] : backend_ops(cpu::stft, reference::stft)) {
      CAPTURE(backend);
      auto y = stft(x, s);
      CHECK(y.shape() == mx::Shape{1, (samples - 16) / 4 + 1, 18});
      CHECK(
          relative_error(y, expected) <
          (backend == "cpu" ? 1e-6 : graph_tolerance(1e-6)));
    }
  }
}

TEST_CASE("stft of less than a frame is empty") {
  for (int samples : {0, 1, 12, 15}) {
    CAPTURE(samples);
    auto y = cpu::stft(
        mx::zeros({2, samples}, mx::float32, cpu_stream()), cpu_stream());
    mx::eval(y);
    CHECK(y.shape() == mx::Shape{2, 0, 18});
  }
}

TEST_CASE("stft of a batch is that of its rows") {
  auto x = noise_array({3, 1111}, 1);
  Values all = values(x), expected;
  for (int b = 0; b < 3; ++b) {
    Values row(all.begin() + b * 1111, all.begin() + (b + 1) * 1111);
    expected = joined(expected, stft_reference(row));
  }
  CHECK(relative_error(cpu::stft(x, cpu_stream()), expected) < 1e-6);
  CHECK(
      relative_error(reference::stft(x, graph_stream()), expected) <
      graph_tolerance(1e-6));
}

TEST_CASE("istft divides by the windows that are there") {
  for (int frames : {1, 2, 3, 4, 5, 100, 600}) {
    for (bool first : {false, true}) {
      for (bool last : {false, true}) {
        CAPTURE(frames);
        CAPTURE(first);
        CAPTURE(last);
        auto x = noise_array({1, frames, 18}, 1);
        int hops = std::max(0, frames - 3 + first + last);
        for (auto [backend, istft, s] :
             backend_ops(cpu::istft, reference::istft)) {
          CAPTURE(backend);
          auto y = istft(x, {first, last}, s);
          mx::eval(y);
          REQUIRE(y.shape() == mx::Shape{1, 4 * hops});
          if (hops > 0) {
            Values expected = istft_reference(values(x), first, last);
            CHECK(
                relative_error(y, expected) <
                (backend == "cpu" ? 1e-6 : graph_tolerance(1e-6)));
          }
        }
      }
    }
  }
}

TEST_CASE("istft of a batch is that of its rows") {
  auto x = noise_array({3, 300, 18}, 1);
  Values all = values(x), expected;
  for (int b = 0; b < 3; ++b) {
    Values row(all.begin() + b * 5400, all.begin() + (b + 1) * 5400);
    expected = joined(expected, istft_reference(row, true, false));
  }
  for (auto [backend, istft, s] : backend_ops(cpu::istft, reference::istft)) {
    CAPTURE(backend);
    auto y = istft(x, {true, false}, s);
    CHECK(y.shape() == mx::Shape{3, 4 * 298});
    CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
  }
}

TEST_CASE("istft of parts that share three frames is that of the whole") {
  auto s = cpu_stream();
  auto x = noise_array({1, 700, 18}, 1);
  Values whole = values(cpu::istft(x, {true, true}, s));
  for (int cut : {3, 4, 300, 696}) {
    CAPTURE(cut);
    Values parts = joined(
        values(cpu::istft(frames_of(x, 0, cut), {true, false}, s)),
        values(cpu::istft(frames_of(x, cut - 3, 700), {false, true}, s)));
    CHECK(parts == whole);
  }
}

TEST_CASE("a reflected signal comes back from stft and istft") {
  auto s = cpu_stream();
  constexpr int samples = 960;
  auto x = noise(samples, 1);
  // Half a frame on either side, as torch.stft centres its frames.
  std::vector<float> padded;
  for (int i = -8; i < samples + 8; ++i) {
    int at = i < 0 ? -i : i >= samples ? 2 * (samples - 1) - i : i;
    padded.push_back(x[at]);
  }
  auto spectrum = cpu::stft(array_of(padded, {1, samples + 16}), s);
  CHECK(spectrum.shape() == mx::Shape{1, samples / 4 + 1, 18});
  Values expected(x.begin(), x.end());
  for (auto [backend, istft, stream] :
       backend_ops(cpu::istft, reference::istft)) {
    CAPTURE(backend);
    CHECK(
        relative_error(istft(spectrum, {true, true}, stream), expected) <
        graph_tolerance(1e-6));
  }
}

TEST_CASE("polar_spectrum bounds magnitudes and takes the sine of phases") {
  for (int frames : {1, 2, 15, 16, 17, 300}) {
    CAPTURE(frames);
    auto numbers = noise(frames * 18, 1);
    for (float& x : numbers) {
      x *= 4.0f; // some of the magnitudes above 100
    }
    auto x = array_of(numbers, {1, frames, 18});
    Values expected(numbers.size());
    for (int f = 0; f < frames; ++f) {
      for (int bin = 0; bin < 9; ++bin) {
        size_t at = f * 18 + bin;
        double magnitude = std::min(std::exp(double(numbers[at])), 100.0);
        double phase = std::sin(double(numbers[at + 9]));
        expected[at] = magnitude * std::cos(phase);
        expected[at + 9] = magnitude * std::sin(phase);
      }
    }
    auto y = cpu::polar_spectrum(x, cpu_stream());
    CHECK(relative_error(y, expected) < 1e-6);
    y = reference::polar_spectrum(x, graph_stream());
    CHECK(relative_error(y, expected) < graph_tolerance(1e-6));
  }
}

TEST_CASE("spectra of every layout of their input") {
  auto x = noise_array({2, 40}, 1), spectrum = noise_array({2, 7, 18}, 2);
  for (auto [backend, stft, s] : backend_ops(cpu::stft, reference::stft)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return stft(v, s); });
  }
  for (auto [backend, polar, s] :
       backend_ops(cpu::polar_spectrum, reference::polar_spectrum)) {
    CAPTURE(backend);
    check_views(spectrum, [&](auto& v) { return polar(v, s); });
  }
  for (auto [backend, istft, s] : backend_ops(cpu::istft, reference::istft)) {
    CAPTURE(backend);
    check_views(spectrum, [&](auto& v) { return istft(v, {true, false}, s); });
  }
}

TEST_CASE("power_spectrum is the squared magnitude of the Fourier transform") {
  for (int size : {2, 4, 6, 8, 10, 14, 26, 30, 98, 400, 512, 1920}) {
    CAPTURE(size);
    auto x = noise_array({2, size}, 1);
    Values expected = frames_reference(x);
    for (auto [backend, power, s] :
         backend_ops(cpu::power_spectrum, ops::power_spectrum)) {
      CAPTURE(backend);
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
  for (auto [backend, power, s] :
       backend_ops(cpu::power_spectrum, ops::power_spectrum)) {
    CAPTURE(backend);
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
