#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// A pitch that comes and goes.
mx::array pitch_of(int frames) {
  std::vector<float> pitch;
  for (int i = 0; i < frames; ++i) {
    pitch.push_back(i % 7 == 3 ? 0.0f : 60.0f + 331.7f * ((i * 29) % 100) / 99);
  }
  return array_of(pitch, {frames});
}

const ops::Cycles kStart{0, 0.25, -0.5, 0.499, 1.75, -3.125, 1e-9, 0.1, 0.9};

// How far apart two phases are, round the cycle.
double cycle_distance(double a, double b) {
  double distance = std::fabs(a - b);
  return std::min(distance, 1 - distance);
}

} // namespace

TEST_CASE("kernel phases: the CPU's, of however many frames at once") {
  auto s = kernel_stream();
  for (int frames : {1, 5, 255, 256, 257, 700}) {
    CAPTURE(frames);
    auto f0 = pitch_of(frames);
    auto expected = cpu::frame_phases(
        f0, cpu::start_phases(kStart, cpu_stream()), cpu_stream());
    Values starts = values(expected.starts);
    auto whole = gpu::frame_phases(f0, gpu::start_phases(kStart, s), s);
    Values found = values(whole.starts);
    REQUIRE(found.size() == starts.size());
    for (size_t i = 0; i < found.size(); ++i) {
      REQUIRE(cycle_distance(found[i], starts[i]) < 1.2e-7);
    }
    if (frames > 5) {
      auto part = [&](int begin, int end) {
        return mx::slice(f0, {begin}, {end}, cpu_stream());
      };
      auto first =
          gpu::frame_phases(part(0, 5), gpu::start_phases(kStart, s), s);
      auto rest = gpu::frame_phases(part(5, frames), first.phases, s);
      auto joined = mx::concatenate({first.starts, rest.starts}, 0, s);
      CHECK(same_bits(joined, whole.starts));
      mx::eval(rest.phases, whole.phases);
      CHECK(std::equal(
          rest.phases.data<uint64_t>(),
          rest.phases.data<uint64_t>() + ops::kHarmonics,
          whole.phases.data<uint64_t>()));
    }
  }
}

TEST_CASE("kernel harmonic_source: voiced and unvoiced frames") {
  for (int frames : {1, 3, 10}) {
    CAPTURE(frames);
    ops::HarmonicSource source{
        pitch_of(frames),
        mx::abs(noise_array({frames, 9}, 1), cpu_stream()),
        noise_array({480 * frames, 9}, 2),
        noise_array({9}, 3),
        noise_array({1}, 4)};
    auto y = gpu::harmonic_source(source, kernel_stream());
    auto expected = reference::harmonic_source(source, cpu_stream());
    CHECK(y.shape() == expected.shape());
    // Up to 180 cycles are rounded once or twice, as the compiler has it.
    CHECK(relative_error(y, values(expected)) < (emulated() ? 2e-6 : 2e-5));
  }
}
