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

std::vector<uint16_t> rounded(const std::vector<float>& floats) {
  std::vector<uint16_t> half(floats.size());
  simd().pack[static_cast<int>(Storage::bf16)](
      floats.data(), floats.size(), half.data());
  return half;
}

std::vector<uint16_t> half_noise(size_t count, uint32_t seed) {
  return rounded(noise(count, seed));
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

TEST_CASE("matrix loops unpack quantized weights as bfloat16") {
  constexpr int kColumns = 43, kDepth = 192;
  for (int bits : {8, 4}) {
    CAPTURE(bits);
    auto w = ops::Matrix::quantized(
        testing::noise_array({kColumns, kDepth}, 1),
        bits,
        testing::cpu_stream());
    PackedQuantized quantized(w.w, kColumns, bits);
    std::vector<float> floats(kColumns * kDepth);
    decode_rows(quantized, 0, kColumns, floats.data());
    auto rows = rounded(floats);
    for_each_table([&](const MatrixLoops& loops) {
      for (int first = 0; loops.unpack_panel && first < kColumns;
           first += kTile) {
        Aligned<uint16_t> panel(kDepth * kTile), expected(kDepth * kTile);
        loops.unpack_panel(
            quantized.tile(first / kTile),
            quantized.groups,
            bits,
            panel.data());
        loops.pack_panel(
            rows.data() + first * kDepth,
            kDepth,
            std::min(kTile, kColumns - first),
            1,
            kDepth,
            expected.data());
        CHECK(std::equal(
            panel.data(), panel.data() + kDepth * kTile, expected.data()));
      }
    });
  }
}

namespace {

struct AttentionInputs {
  std::vector<uint16_t> q, k, v;
  int depth;
  int count;
  float scale;
};

// By the loops: [loops.queries, depth]
std::vector<float> attended(
    const MatrixLoops& loops,
    const AttentionInputs& in) {
  int depth = in.depth, count = in.count, padded = matrix_depth(count);
  Aligned<uint16_t> keys(padded * depth), values(padded * depth);
  for (int first = 0; first < count; first += kTile) {
    loops.pack_panel(
        in.k.data() + first * depth,
        depth,
        std::min(kTile, count - first),
        1,
        depth,
        keys.data() + first * depth);
  }
  loops.pack_values(in.v.data(), depth, count, depth, values.data());
  Aligned<float> scores(kTile * padded), y(loops.queries * depth);
  Aligned<uint16_t> weights(kTile * padded);
  loops.attend(
      {.q = in.q.data(),
       .depth = depth,
       .count = count,
       .keys = keys.data(),
       .values = values.data(),
       .scale = in.scale,
       .scores = scores.data(),
       .weights = weights.data(),
       .y = y.data()});
  return {y.data(), y.data() + loops.queries * depth};
}

// In double precision: row r of the result.
std::vector<double> expected_row(const AttentionInputs& in, int r) {
  std::vector<double> scores(in.count), y(in.depth);
  double most = -INFINITY, total = 0;
  for (int t = 0; t < in.count; ++t) {
    for (int d = 0; d < in.depth; ++d) {
      scores[t] += in.scale * value(in.q[r * in.depth + d]) *
          value(in.k[t * in.depth + d]);
    }
    most = std::max(most, scores[t]);
  }
  for (int t = 0; t < in.count; ++t) {
    double share = std::exp(scores[t] - most);
    total += share;
    for (int d = 0; d < in.depth; ++d) {
      y[d] += share * value(in.v[t * in.depth + d]);
    }
  }
  for (double& each : y) {
    each /= total;
  }
  return y;
}

void check_attention(const AttentionInputs& in) {
  for_each_table([&](const MatrixLoops& loops) {
    auto y = attended(loops, in);
    double error = 0;
    for (int r = 0; r < loops.queries; ++r) {
      auto expected = expected_row(in, r);
      for (int d = 0; d < in.depth; ++d) {
        double difference = std::fabs(expected[d] - y[r * in.depth + d]);
        error = std::max(error, std::isnan(difference) ? 1 : difference);
      }
    }
    CHECK(error < 1e-2);
  });
}

AttentionInputs attention_inputs(int count, int depth) {
  constexpr int most_queries = 64;
  return {
      half_noise(most_queries * depth, 1),
      half_noise(count * depth, 2),
      half_noise(count * depth, 3),
      depth,
      count,
      1.0f / std::sqrt(static_cast<float>(depth))};
}

} // namespace

TEST_CASE("matrix loops attend to any number of keys") {
  for (int depth : {32, 64, 96}) {
    for (int count : {1, 16, 31, 33, 64, 65, 250}) {
      CAPTURE(depth);
      CAPTURE(count);
      check_attention(attention_inputs(count, depth));
    }
  }
}

TEST_CASE(
    "matrix loops attend where scores differ by more than a float holds") {
  for (int depth : {32, 64}) {
    // The first keys, the last ones, or one in the middle score highest, by up
    // to 2^10 and more.
    for (float growth : {-40.0f, 40.0f, 0.0f}) {
      CAPTURE(depth);
      CAPTURE(growth);
      auto in = attention_inputs(250, depth);
      auto k = noise(in.count * depth, 2);
      for (int t = 0; t < in.count; ++t) {
        float factor = growth == 0.0f ? (t == 130 ? 3000.0f : 1.0f)
                                      : std::exp2(growth * (t - 125) / 500);
        for (int d = 0; d < depth; ++d) {
          k[t * depth + d] *= factor;
        }
      }
      in.k = rounded(k);
      in.scale *= 16;
      check_attention(in);
    }
  }
}

TEST_CASE("matrix loops hide no NaN in attention") {
  constexpr int depth = 64;
  auto in = attention_inputs(100, depth);
  in.k[70 * depth] = 0x7fc0;
  for_each_table([&](const MatrixLoops& loops) {
    for (float each : attended(loops, in)) {
      CHECK(std::isnan(each));
    }
  });
}
