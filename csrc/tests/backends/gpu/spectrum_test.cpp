#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "ops/arrays.h"
#include "ops/frame_spans.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// [1, n, 1] with eight samples mirrored at its ends.
mx::array mirrored(const mx::array& x, bool first, bool last) {
  auto samples = floats(x);
  std::vector<float> all(samples);
  int count = samples.size();
  for (int i = 1; first && i <= 8; ++i) {
    all.insert(all.begin(), samples[i]);
  }
  for (int i = count - 2; last && i >= count - 9; --i) {
    all.push_back(samples[i]);
  }
  count = all.size();
  return array_of(all, {1, count, 1});
}

} // namespace

TEST_CASE("kernel stft: frames of samples in two parts, mirrored at the ends") {
  auto s = kernel_stream();
  for (int count : {16, 17, 31, 120, 483}) {
    for (int split : {0, 3, 12}) {
      for (bool first : {false, true}) {
        for (bool last : {false, true}) {
          CAPTURE(count);
          CAPTURE(split);
          CAPTURE(first);
          CAPTURE(last);
          auto x = noise_array({1, count, 1}, 1);
          auto output = gpu::centred_stft(split_at(x, split), {first, last}, s);
          auto whole = mirrored(x, first, last);
          int length = whole.shape(1);
          auto expected = reference::stft(
              mx::reshape(whole, {1, length}, cpu_stream()), cpu_stream());
          REQUIRE(output.y.shape() == expected.shape());
          CHECK(relative_error(output.y, values(expected)) < 1e-6);
          REQUIRE(output.kept.has_value() == !last);
          if (!last) {
            int from = 4 * expected.shape(1);
            CHECK(same_bits(*output.kept, rows_of(whole, from, length)));
          }
        }
      }
    }
  }
}

TEST_CASE("kernel waveform: frames in two parts become samples") {
  auto s = kernel_stream();
  for (int count : {2, 3, 4, 67, 130}) {
    for (int split : {0, 1, 3}) {
      for (bool first : {false, true}) {
        for (bool last : {false, true}) {
          int hops = count - 3 + first + last;
          if (hops <= 0 || split >= count) {
            continue;
          }
          CAPTURE(count);
          CAPTURE(split);
          CAPTURE(first);
          CAPTURE(last);
          auto x = noise_array({1, count, 18}, 1);
          auto output =
              gpu::waveform(split_at(x, split), {first, last}, 0.4f, s);
          auto expected = reference::istft(
              reference::polar_spectrum(x, cpu_stream()),
              {first, last},
              cpu_stream());
          expected = mx::clip(
              expected, mx::array(-0.4f), mx::array(0.4f), cpu_stream());
          REQUIRE(output.y.shape() == mx::Shape{1, 4 * hops});
          // Exponentials of a few ulp, before most of the sum cancels.
          CHECK(
              relative_error(output.y, values(expected)) <
              (emulated() ? 3e-6 : 3e-5));
          REQUIRE(output.kept.has_value() == !last);
          if (!last) {
            int from = std::max(0, count - 3);
            CHECK(same_bits(*output.kept, rows_of(x, from, count)));
          }
        }
      }
    }
  }
}
