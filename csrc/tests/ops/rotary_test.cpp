#include "nightingale/ops/rotary.h"

#include <doctest/doctest.h>

#include <complex>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Every channel pair (i, i + half) as a complex number, turned.
Values
rotary_reference(const mx::array& x, const mx::array& frequencies, int past) {
  Values y = values(x), turns = values(frequencies);
  int half = turns.size();
  int length = x.shape(1), heads = x.shape(2) / (2 * half);
  for (int row = 0; row < x.shape(0) * length; ++row) {
    double position = past + row % length;
    for (int head = 0; head < heads; ++head) {
      double* pairs = y.data() + (row * heads + head) * 2 * half;
      for (int i = 0; i < half; ++i) {
        auto turned = std::complex(pairs[i], pairs[i + half]) *
            std::polar(1.0, position * turns[i]);
        pairs[i] = turned.real();
        pairs[i + half] = turned.imag();
      }
    }
  }
  return y;
}

} // namespace

TEST_CASE("rotary frequencies are those of llama3") {
  // By hand: 500000^(-i / 32), unchanged down to a wavelength of 2048 (i = 14),
  // an eighth of it above 8192 (from i = 18), a blend of both between.
  auto frequencies = floats(ops::rotary_frequencies(64, {}));
  REQUIRE(frequencies.size() == 32);
  const std::pair<int, double> by_hand[] = {
      {0, 1.0},
      {1, 0.6636012376960885},
      {14, 0.003211445994752591},
      {15, 0.0013718935677611381},
      {16, 0.0005248461609929547},
      {17, 0.0001785078127679964},
      {18, 7.78465527393245e-05},
      {31, 3.767322690173964e-07}};
  for (auto [i, expected] : by_hand) {
    CAPTURE(i);
    CHECK(frequencies[i] == doctest::Approx(expected).epsilon(2e-6));
  }
}

TEST_CASE("rotary turns the pairs of every head by position and frequency") {
  auto frequencies = ops::rotary_frequencies(64, {});
  for (int past : {0, 1, 37, 1000}) {
    for (int length : {1, 2, 50}) {
      for (int heads : {1, 3}) {
        CAPTURE(past);
        CAPTURE(length);
        CAPTURE(heads);
        auto x = noise_array({2, length, heads * 64}, 1);
        Values expected = rotary_reference(x, frequencies, past);
        // Angles are float32: their error is 2^-24 of up to `position` radians.
        double tolerance = 5e-7 + 1.2e-7 * (past + length);
        auto y = cpu::rotary(x, frequencies, past, cpu_stream());
        CHECK(relative_error(y, expected) < tolerance);
        y = reference::rotary(x, frequencies, past, graph_stream());
        CHECK(relative_error(y, expected) < graph_tolerance(2 * tolerance));
      }
    }
  }
}

TEST_CASE("rotary at position 0 changes nothing") {
  auto x = noise_array({2, 1, 128}, 1);
  auto y = cpu::rotary(x, ops::rotary_frequencies(64, {}), 0, cpu_stream());
  CHECK(same_bits(y, x));
}

TEST_CASE("rotary of a chunk is rotary of its rows") {
  auto frequencies = ops::rotary_frequencies(64, {});
  auto s = cpu_stream();
  auto x = noise_array({2, 9, 128}, 1);
  auto whole = cpu::rotary(x, frequencies, 5, s);
  for (int t = 0; t < 9; ++t) {
    auto row = mx::slice(x, {0, t, 0}, {2, t + 1, 128}, s);
    auto expected = mx::slice(whole, {0, t, 0}, {2, t + 1, 128}, s);
    CHECK(same_bits(cpu::rotary(row, frequencies, 5 + t, s), expected));
  }
}

TEST_CASE("rotary of every layout of its inputs") {
  auto x = noise_array({2, 3, 16}, 1);
  auto frequencies = noise_array({4}, 2);
  for (auto [backend, rotary, s] :
       backend_ops(cpu::rotary, reference::rotary)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return rotary(v, frequencies, 7, s); });
    check_views(frequencies, [&](auto& v) { return rotary(x, v, 7, s); });
  }
}

TEST_CASE("rotary of the parts of a wider result") {
  auto s = cpu_stream();
  auto frequencies = noise_array({4}, 2);
  // Split as the backbone splits queries, keys and values, and by rows.
  for (int axis : {1, 2}) {
    auto wide = cpu::leaky_relu(noise_array({2, 6, 48}, 1), 0.5f, s);
    auto parts = mx::split(wide, 3, axis, s);
    for (int i = 0; i < 3; ++i) {
      CAPTURE(axis);
      CAPTURE(i);
      // Turned before the part itself is computed, as in a forward pass.
      auto turned = values(cpu::rotary(parts[i], frequencies, 7, s));
      Values expected = rotary_reference(parts[i], frequencies, 7);
      CHECK(relative_error(turned, expected) < 5e-6);
    }
  }
}

TEST_CASE("rotary of one row broadcast to a batch") {
  auto s = cpu_stream();
  auto frequencies = noise_array({4}, 2);
  auto x = mx::broadcast_to(noise_array({1, 3, 16}, 1), {4, 3, 16}, s);
  auto y = cpu::rotary(x, frequencies, 7, s);
  CHECK(relative_error(y, rotary_reference(x, frequencies, 7)) < 3e-6);
}

TEST_CASE("rotary takes half inputs and gives float32 on the CPU") {
  auto frequencies = noise_array({4}, 2);
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto x = noise_array({1, 3, 16}, 1, dtype);
    auto y = cpu::rotary(x, frequencies, 7, cpu_stream());
    CHECK(y.dtype() == mx::float32);
    CHECK(relative_error(y, rotary_reference(x, frequencies, 7)) < 3e-6);
  }
}
