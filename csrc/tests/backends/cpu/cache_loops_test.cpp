
#include <doctest/doctest.h>

#include <bit>
#include <span>

#include "nightingale/backends/cpu/simd.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;
using cpu::Simd;

namespace {

using Words = std::vector<uint32_t>;

template <typename F>
void for_each_case(F body) {
  for (int i = 0; i < cpu::simd_count(); ++i) {
    std::string table = cpu::simd_at(i).name;
    CAPTURE(table);
    for (int bits : {8, 4}) {
      CAPTURE(bits);
      for (int depth : {32, 64, 96, 128}) {
        CAPTURE(depth);
        body(cpu::simd_at(i), bits, depth);
      }
    }
  }
}

int words_of(int bits, int depth) {
  return depth * (bits + 1) / 32;
}

float scale_of(uint32_t affine) {
  return std::bit_cast<float>(affine << 16);
}
float offset_of(uint32_t affine) {
  return std::bit_cast<float>(affine & 0xffff0000);
}

// What the words of one vector stand for.
Values decoded(const uint32_t* row, int bits, int depth) {
  Values y(depth);
  for (int d = 0; d < depth; ++d) {
    uint32_t affine = row[depth * bits / 32 + d / ops::kCacheGroup];
    uint32_t code = row[d * bits / 32] >> (d * bits % 32) & ((1u << bits) - 1);
    y[d] = double(scale_of(affine)) * code + offset_of(affine);
  }
  return y;
}

// One word behind the row is not to be written.
Words packed(const Simd& simd, int bits, const std::vector<float>& x) {
  int words = words_of(bits, x.size());
  Words row(words + 1, 77);
  simd.cache.pack[cpu::quantized_index(bits)](x.data(), x.size(), row.data());
  CHECK(row.back() == 77);
  row.pop_back();
  return row;
}

// `count` vectors, one after the other.
Words packed_rows(const Simd& simd, int bits, int depth, int count) {
  Words rows;
  for (int t = 0; t < count; ++t) {
    auto row = packed(simd, bits, noise(depth, 10 + t));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

const Simd& plain() {
  return cpu::simd_at(cpu::simd_count() - 1);
}

} // namespace

TEST_CASE("packed vectors are within half a scale of their values") {
  for_each_case([](const Simd& simd, int bits, int depth) {
    for (uint32_t seed = 1; seed < 20; ++seed) {
      auto x = noise(depth, seed);
      for (float& value : x) {
        value = value * 3.0f + (seed % 3) * 4.0f; // around 0, or all above it
      }
      Words row = packed(simd, bits, x);
      CHECK(row == packed(plain(), bits, x));
      Values y = decoded(row.data(), bits, depth);
      for (int begin = 0; begin < depth; begin += ops::kCacheGroup) {
        int end = begin + ops::kCacheGroup;
        auto [least, most] =
            std::ranges::minmax(std::span(x).subspan(begin, ops::kCacheGroup));
        float scale = scale_of(row[(depth * bits + begin) / 32]);
        double span = std::max(most, 0.0f) - std::min(least, 0.0f);
        CHECK(scale < 1.02 * span / ((1 << bits) - 1)); // bfloat16, rounded up
        for (int d = begin; d < end; ++d) {
          REQUIRE(std::fabs(y[d] - x[d]) <= 0.5 * scale * (1 + 1e-4));
        }
      }
    }
  });
}

TEST_CASE("vectors without a span, huge and tiny ones keep their values") {
  for_each_case([](const Simd& simd, int bits, int depth) {
    auto error = [&](const std::vector<float>& x) {
      Words row = packed(simd, bits, x);
      return relative_error(
          decoded(row.data(), bits, depth), Values(x.begin(), x.end()));
    };
    CHECK(error(std::vector<float>(depth, 0.0f)) == 0.0);
    CHECK(error(std::vector<float>(depth, 3.0f)) < 0.01);
    CHECK(error(std::vector<float>(depth, -3.0f)) < 0.01);
    for (float size : {1e37f, 1e-3f, 1e-30f, 1e-37f}) {
      CAPTURE(size);
      auto x = noise(depth, 3);
      for (float& value : x) {
        value *= size;
      }
      CHECK(error(x) < (bits == 8 ? 0.006 : 0.08));
    }
    std::vector<float> one(depth, 0.0f);
    one[depth - 1] = 5.0f;
    CHECK(error(one) < 0.01);
    // Below what a bfloat16 scale can tell apart a vector may become zeros.
    Words row = packed(simd, bits, std::vector<float>(depth, 1e-44f));
    for (double value : decoded(row.data(), bits, depth)) {
      CHECK(std::fabs(value) < 1e-38);
    }
  });
}

TEST_CASE("channels that share a scale with one not finite read as NaN") {
  for_each_case([](const Simd& simd, int bits, int depth) {
    for (float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
      for (int at : {0, depth / 2 + 1, depth - 1}) {
        auto x = noise(depth, 1);
        x[at] = bad;
        Words row = packed(simd, bits, x);
        std::vector<float> y(depth);
        simd.cache.unpack[cpu::quantized_index(bits)](
            row.data(), 1, depth, y.data());
        for (int d = 0; d < depth; ++d) {
          bool together = d / ops::kCacheGroup == at / ops::kCacheGroup;
          CHECK(std::isnan(y[d]) == together);
        }
      }
    }
  });
}

TEST_CASE("unpack, dots and weighted_sum are those of the unpacked values") {
  for_each_case([](const Simd& simd, int bits, int depth) {
    int index = cpu::quantized_index(bits), words = words_of(bits, depth);
    for (int count : {1, 2, 3, 4, 5, 8, 17, 101}) {
      CAPTURE(count);
      Words rows = packed_rows(simd, bits, depth, count);
      auto x = noise(depth, 1), p = noise(count, 2);
      Values whole, dots(count), sums(depth);
      for (int t = 0; t < count; ++t) {
        Values one = decoded(rows.data() + t * words, bits, depth);
        whole.insert(whole.end(), one.begin(), one.end());
        for (int d = 0; d < depth; ++d) {
          dots[t] += double(x[d]) * one[d];
          sums[d] += double(p[t]) * one[d];
        }
      }
      std::vector<float> y(count * depth + 1, 7.0f);
      simd.cache.unpack[index](rows.data(), count, depth, y.data());
      CHECK(y.back() == 7.0f);
      y.pop_back();
      CHECK(relative_error(Values(y.begin(), y.end()), whole) < 1e-6);

      y.assign(count + 1, 7.0f);
      simd.cache.dots[index](x.data(), rows.data(), count, depth, y.data());
      CHECK(y.back() == 7.0f);
      y.pop_back();
      CHECK(relative_error(Values(y.begin(), y.end()), dots) < 1e-5);

      y.assign(depth + 1, 7.0f);
      simd.cache.weighted_sum[index](
          p.data(), rows.data(), count, depth, y.data());
      CHECK(y.back() == 7.0f);
      y.pop_back();
      CHECK(relative_error(Values(y.begin(), y.end()), sums) < 1e-5);
    }
  });
}

TEST_CASE("dot products with quantized vectors are batch-invariant") {
  for_each_case([](const Simd& simd, int bits, int depth) {
    int index = cpu::quantized_index(bits), words = words_of(bits, depth);
    Words rows = packed_rows(simd, bits, depth, 11);
    auto x = noise(depth, 1);
    std::vector<float> whole(11);
    simd.cache.dots[index](x.data(), rows.data(), 11, depth, whole.data());
    for (int t = 0; t < 11; ++t) {
      float alone;
      simd.cache.dots[index](
          x.data(), rows.data() + t * words, 1, depth, &alone);
      CHECK(std::bit_cast<int>(alone) == std::bit_cast<int>(whole[t]));
    }
  });
}
