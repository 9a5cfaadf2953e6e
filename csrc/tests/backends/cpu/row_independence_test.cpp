// Results are batch-invariant for up to 16 rows: what decoding several
// positions or several sentences at once rests on.

#include <doctest/doctest.h>

#include <functional>

#include "backends/cpu/thread_count.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/family.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kMost = ops::kBatchInvariantRows;
constexpr int kHeads = 2, kChannels = kHeads * kHeadDim;

// An op of rows [begin, end) of the same input → [B, end - begin, C].
using OpOfRows = std::function<mx::array(int begin, int end)>;

void check_rows(const OpOfRows& op) {
  for (int threads : {1, 2, 3}) {
    CAPTURE(threads);
    ThreadCount count(threads);
    std::vector<mx::array> alone;
    for (int row = 0; row < kMost; ++row) {
      alone.push_back(op(row, row + 1));
    }
    for (int rows = 2; rows <= kMost; ++rows) {
      CAPTURE(rows);
      auto together = op(0, rows);
      for (int row = 0; row < rows; ++row) {
        CHECK(same_bits(rows_of(together, row, row + 1), alone[row]));
      }
    }
  }
}

} // namespace

TEST_CASE("dot products of every table are batch-invariant") {
  constexpr int columns = 19; // some blocks, and some columns alone
  for (int table = 0; table < cpu::simd_count(); ++table) {
    const auto& simd = cpu::simd_at(table);
    std::string name = simd.name;
    CAPTURE(name);
    for (int storage = 0; storage < 3; ++storage) {
      for (int depth : {1, 15, 64, 133, 256, 700, 1024}) {
        auto x = noise(kMost * depth, 1);
        auto numbers = noise(columns * depth, 2);
        std::vector<float> w(columns * depth); // room for any storage
        simd.pack[storage](numbers.data(), numbers.size(), w.data());
        auto dots_of = [&](int begin, int rows) {
          std::vector<float> y(rows * columns);
          cpu::DotArgs a;
          a.x = x.data() + begin * depth;
          a.x_stride = a.w_stride = a.depth = depth;
          a.rows = rows;
          a.w = w.data();
          a.columns = a.y_stride = columns;
          a.y = y.data();
          simd.dots[storage](a);
          return y;
        };
        for (int rows = 2; rows <= kMost; ++rows) {
          CAPTURE(rows);
          auto together = dots_of(0, rows);
          std::vector<float> alone;
          for (int row = 0; row < rows; ++row) {
            auto one = dots_of(row, 1);
            alone.insert(alone.end(), one.begin(), one.end());
          }
          CHECK(same_bits(together, alone));
        }
      }
    }
  }
}

TEST_CASE("the products of a layer are batch-invariant") {
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int depth : {133, 64}) {
      auto x = noise_array({1, kMost, depth}, 1);
      auto norm = noise_array({depth}, 2);
      auto w = noise_array({70, depth}, 3, dtype);
      auto residual = noise_array({1, kMost, 70}, 4);
      check_rows([&](int begin, int end) {
        auto rest = rows_of(residual, begin, end);
        return cpu::linear(rows_of(x, begin, end), w, {.residual = rest}, s);
      });
      check_rows([&](int begin, int end) {
        return cpu::norm_linear(
            rows_of(x, begin, end), {norm, 1e-5f}, w, {}, s);
      });
      check_rows([&](int begin, int end) {
        return cpu::norm_swiglu(rows_of(x, begin, end), {norm, 1e-5f}, w, s);
      });
    }
  }
}

TEST_CASE("norms and rotations are batch-invariant") {
  auto s = cpu_stream();
  auto x = noise_array({2, kMost, kChannels}, 1);
  auto norm = noise_array({kChannels}, 2);
  auto frequencies = ops::rotary_frequencies(kHeadDim, {});
  check_rows([&](int begin, int end) {
    return cpu::rms_norm(rows_of(x, begin, end), {norm, 1e-5f}, s);
  });
  check_rows([&](int begin, int end) {
    return cpu::rotary(rows_of(x, begin, end), frequencies, 9 + begin, s);
  });
}

TEST_CASE("self-attention is batch-invariant") {
  auto s = cpu_stream();
  constexpr int past = 21, capacity = past + kMost;
  auto frequencies = ops::rotary_frequencies(kHeadDim, {});
  auto qkv = noise_array({2, kMost, 3 * kChannels}, 1);
  ops::AttentionWatch watch{{0, 1}, 0, 3, 11};
  // What a cache holds after `length` positions, begun anew each time: an op
  // writes into the arrays it is given.
  auto attend = [&](mx::Dtype dtype, const std::vector<int>& lengths) {
    auto keys = noise_array({2, kHeads, capacity, kHeadDim}, 2, dtype);
    auto values = noise_array({2, kHeads, capacity, kHeadDim}, 3, dtype);
    std::vector<mx::array> outs, weights;
    int done = 0;
    for (int length : lengths) {
      watch.rows = length;
      auto step = cpu::self_attention(
          {rows_of(qkv, done, done + length),
           frequencies,
           {keys, values},
           past + done,
           watch},
          s);
      keys = step.cache.keys;
      values = step.cache.values;
      outs.push_back(step.out);
      weights.push_back(
          mx::concatenate({step.weights[0], step.weights[1]}, 1, s));
      mx::eval(outs.back(), weights.back(), keys, values);
      done += length;
    }
    return std::vector<mx::array>{
        mx::concatenate(outs, 1, s), mx::concatenate(weights, 0, s), keys};
  };
  for (mx::Dtype dtype : kFloatTypes) {
    for (int threads : {1, 2, 3}) {
      CAPTURE(threads);
      ThreadCount count(threads);
      auto alone = attend(dtype, std::vector<int>(kMost, 1));
      for (int length = 2; length <= kMost; ++length) {
        CAPTURE(length);
        std::vector<int> lengths(kMost / length, length);
        lengths.resize(lengths.size() + kMost % length, 1);
        auto together = attend(dtype, lengths);
        for (size_t i = 0; i < alone.size(); ++i) {
          CHECK(same_bits(together[i], alone[i]));
        }
      }
    }
  }
}
