#include "nightingale/ops/source.h"

#include <doctest/doctest.h>

#include <numbers>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

ops::HarmonicSource source_of(const std::vector<float>& pitch) {
  int frames = pitch.size();
  return {
      array_of(pitch, {frames}),
      noise_array({frames, 9}, 1),
      noise_array({480 * frames, 9}, 2),
      noise_array({9}, 3),
      noise_array({1}, 4)};
}

// The step is rounded to float32, as it is where it is added up.
Values source_reference(const ops::HarmonicSource& source) {
  auto f0 = floats(source.f0);
  Values starts = values(source.starts), noise = values(source.noise);
  Values w = values(source.w), b = values(source.b), y;
  for (size_t frame = 0; frame < f0.size(); ++frame) {
    bool voiced = f0[frame] > 10;
    for (int k = 0; k < 480; ++k) {
      double sum = b[0];
      for (int h = 0; h < 9; ++h) {
        float step = f0[frame] * (h + 1) / 24000.0f;
        double cycles = starts[frame * 9 + h] + (k + 1) * double(step);
        double hiss = noise[(frame * 480 + k) * 9 + h];
        double value = voiced
            ? 0.1 * std::sin(2 * std::numbers::pi * cycles) + 0.003 * hiss
            : 0.1 / 3 * hiss;
        sum += w[h] * value;
      }
      y.push_back(std::tanh(sum));
    }
  }
  return y;
}

} // namespace

TEST_CASE("harmonic_source of voiced and unvoiced frames") {
  for (const auto& pitch :
       {std::vector<float>{200.0f},
        std::vector<float>{0.0f},
        std::vector<float>{9.9f, 10.0f, 10.1f, 61.7f, 0.0f, 440.0f, 1000.0f}}) {
    CAPTURE(pitch.size());
    auto x = source_of(pitch);
    Values expected = source_reference(x);
    for (auto [backend, source, s] :
         backend_ops(cpu::harmonic_source, reference::harmonic_source)) {
      CAPTURE(backend);
      auto y = source(x, s);
      CHECK(y.shape() == mx::Shape{480 * int(pitch.size())});
      // The phase, up to 180 cycles, is rounded to 2^-24 of itself.
      CHECK(relative_error(y, expected) < graph_tolerance(2e-5));
    }
  }
}

TEST_CASE("both backends of harmonic_source round the phase alike") {
  std::vector<float> pitch;
  for (int frame = 0; frame < 40; ++frame) {
    pitch.push_back(80.0f + 7.3f * frame);
  }
  auto x = source_of(pitch);
  auto on_cpu = cpu::harmonic_source(x, cpu_stream());
  auto graph = reference::harmonic_source(x, graph_stream());
  CHECK(relative_error(on_cpu, values(graph)) < graph_tolerance(2e-6));
}

TEST_CASE("harmonic_source of no frames is empty") {
  auto s = cpu_stream();
  auto y = cpu::harmonic_source(
      {mx::zeros({0}, mx::float32, s),
       mx::zeros({0, 9}, mx::float32, s),
       mx::zeros({0, 9}, mx::float32, s),
       noise_array({9}, 1),
       noise_array({1}, 2)},
      s);
  mx::eval(y);
  CHECK(y.size() == 0);
}
