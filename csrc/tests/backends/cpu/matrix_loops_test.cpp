// The loops for bfloat16 that this processor has: each table, not only the one
// that ops use.

#include <doctest/doctest.h>

#include "nightingale/backends/cpu/half_bits.h"
#include "nightingale/backends/cpu/matrix_units.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::cpu;
using testing::noise;

namespace {

constexpr int kTile = kMatrixTile;

template <typename F>
void for_each_table(F body) {
  for (const MatrixLoops* loops : matrix_loops()) {
    std::string table = loops->name;
    CAPTURE(table);
    loops->begin();
    body(*loops);
    loops->end();
  }
}

std::vector<uint16_t> half_noise(size_t count, uint32_t seed) {
  std::vector<uint16_t> half(count);
  auto floats = noise(count, seed);
  simd().pack[static_cast<int>(Storage::bf16)](
      floats.data(), count, half.data());
  return half;
}

double value(uint16_t half) {
  return widen(bf16{half});
}

// Memory as loops want it.
template <typename T>
struct Aligned {
  explicit Aligned(size_t count) : numbers(count + 64 / sizeof(T)) {}

  T* data() {
    auto at = reinterpret_cast<uintptr_t>(numbers.data());
    return reinterpret_cast<T*>((at + 63) / 64 * 64);
  }

  std::vector<T> numbers;
};

} // namespace

TEST_CASE("matrix loops multiply tiles of rows under taps") {
  constexpr int kColumns = 27;
  for (int taps : {1, 3}) {
    for (int depth : {32, 96, 1024}) {
      CAPTURE(taps);
      CAPTURE(depth);
      int row_step = depth + 32, tap_step = 2 * row_step;
      auto x = half_noise((kTile + 2 * taps) * row_step, 1);
      auto w = half_noise(kColumns * taps * depth, 2);
      for_each_table([&](const MatrixLoops& loops) {
        Aligned<uint16_t> panel(taps * depth * kTile);
        loops.pack_panel(
            w.data(), taps * depth, kColumns, taps, depth, panel.data());
        Aligned<float> y(kTile * kTile);
        loops.tile(
            {.x = x.data(),
             .row_step = row_step,
             .tap_step = tap_step,
             .taps = taps,
             .depth = depth,
             .w = panel.data(),
             .w_stride = kTile,
             .y = y.data(),
             .y_stride = kTile});
        double largest = 0, error = 0;
        for (int r = 0; r < kTile; ++r) {
          for (int c = 0; c < kColumns; ++c) {
            double sum = 0;
            for (int tap = 0; tap < taps; ++tap) {
              for (int k = 0; k < depth; ++k) {
                sum += value(x[r * row_step + tap * tap_step + k]) *
                    value(w[(c * taps + tap) * depth + k]);
              }
            }
            largest = std::max(largest, std::fabs(sum));
            error = std::max(error, std::fabs(sum - y.data()[r * kTile + c]));
          }
          for (int c = kColumns; c < kTile; ++c) {
            CHECK(y.data()[r * kTile + c] == 0.0f);
          }
        }
        CHECK(error < 2e-6 * largest);
      });
    }
  }
}

TEST_CASE("matrix loops attend to any number of keys") {
  for (int depth : {32, 64, 96}) {
    for (int count : {1, 16, 31, 33, 250}) {
      CAPTURE(depth);
      CAPTURE(count);
      auto q = half_noise(kTile * depth, 1);
      auto k = half_noise(count * depth, 2);
      auto v = half_noise(count * depth, 3);
      float scale = 1.0f / std::sqrt(static_cast<float>(depth));
      for_each_table([&](const MatrixLoops& loops) {
        int padded = matrix_depth(count);
        Aligned<uint16_t> keys(padded * depth), values(padded * depth);
        for (int first = 0; first < count; first += kTile) {
          loops.pack_panel(
              k.data() + first * depth,
              depth,
              std::min(kTile, count - first),
              1,
              depth,
              keys.data() + first * depth);
        }
        loops.pack_values(v.data(), depth, count, depth, values.data());
        Aligned<float> scores(kTile * padded), y(kTile * depth);
        Aligned<uint16_t> weights(kTile * padded);
        loops.attend(
            {.q = q.data(),
             .depth = depth,
             .count = count,
             .keys = keys.data(),
             .values = values.data(),
             .scale = scale,
             .scores = scores.data(),
             .weights = weights.data(),
             .y = y.data()});
        double error = 0;
        for (int r = 0; r < kTile; ++r) {
          std::vector<double> shares(count);
          double total = 0;
          for (int t = 0; t < count; ++t) {
            double score = 0;
            for (int d = 0; d < depth; ++d) {
              score += value(q[r * depth + d]) * value(k[t * depth + d]);
            }
            total += shares[t] = std::exp(scale * score);
          }
          for (int d = 0; d < depth; ++d) {
            double sum = 0;
            for (int t = 0; t < count; ++t) {
              sum += shares[t] / total * value(v[t * depth + d]);
            }
            error = std::max(error, std::fabs(sum - y.data()[r * depth + d]));
          }
        }
        CHECK(error < 1e-2);
      });
    }
  }
}
