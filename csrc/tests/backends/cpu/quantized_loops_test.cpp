#include <doctest/doctest.h>

#include <cstring>

#include "nightingale/backends/cpu/simd.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::cpu;
using testing::noise;
using testing::same_bits;

namespace {

constexpr int kGroups = 3, kDepth = kGroups * kQuantizedGroup;

// Bits of rows and of weights.
struct Format {
  int row_bits, bits;
};
constexpr Format kFormats[] = {{16, 8}, {16, 4}, {8, 8}, {8, 4}};

template <typename F>
void for_each_table(F body) {
  for (int i = 0; i < simd_count(); ++i) {
    std::string table = simd_at(i).name;
    CAPTURE(table);
    body(simd_at(i).quantized);
  }
}

const QuantizedLoops& plain() {
  return simd_at(simd_count() - 1).quantized;
}

struct Integers {
  Integers(
      const QuantizedLoops& loops,
      const std::vector<float>& x,
      int bits = 16)
      : rows(x.size() / kDepth),
        bits(bits),
        integers(x.size()),
        scales(rows * kGroups),
        sums(rows * kGroups) {
    for (int r = 0; r < rows; ++r) {
      loops.to_integers(
          x.data() + r * kDepth,
          kGroups,
          bits,
          integers.data() + r * kDepth,
          scales.data() + r * kGroups,
          sums.data() + r * kGroups);
    }
  }

  // As `loops` read them.
  QuantizedRows view(const QuantizedLoops& loops) {
    QuantizedRows view{
        integers.data(), scales.data(), sums.data(), rows, kGroups, bits};
    if (auto split = loops.split[row_index(bits)]) {
      bytes.resize(bits / 8 * integers.size());
      totals.resize(scales.size());
      split(integers.data(), rows * kGroups, bytes.data(), totals.data());
      view.bytes = bytes.data();
      view.totals = totals.data();
    }
    return view;
  }

  int rows;
  int bits;
  std::vector<int16_t> integers;
  std::vector<float> scales, sums;
  std::vector<int8_t> bytes;
  std::vector<int32_t> totals;
};

// A tile of any quantized weights, with scales and biases of either sign.
std::vector<uint8_t> some_tile(int bits) {
  std::vector<uint8_t> tile(kGroups * quantized_group_bytes(bits));
  for (size_t i = 0; i < tile.size(); ++i) {
    tile[i] = static_cast<uint8_t>((i * 2654435761u) >> 11);
  }
  auto numbers = noise(kGroups * 2 * kQuantizedTile, 9);
  for (int g = 0; g < kGroups; ++g) {
    simd_at(simd_count() - 1)
        .pack[static_cast<int>(Storage::f16)](
            numbers.data() + g * 2 * kQuantizedTile,
            2 * kQuantizedTile,
            tile.data() + g * quantized_group_bytes(bits) +
                quantized_bytes(bits));
  }
  return tile;
}

// The products of some rows with one or two tiles.
void multiply(
    const QuantizedLoops& loops,
    int bits,
    const QuantizedTileArgs& args) {
  loops.tile[row_index(args.x.bits)][quantized_index(bits)](args);
}

// Code of one row and column of a tile's group.
int code_at(const uint8_t* group, int bits, int row, int column) {
  int half = bits == 4 && column >= kQuantizedGroup / 2;
  int within = column - half * kQuantizedGroup / 2;
  int place = 0;
  while (kQuantizedOrder[place] != within % 4) {
    ++place;
  }
  int byte = group[within / 4 * 4 * kQuantizedTile + 4 * row + place];
  return bits == 8 ? byte : byte >> (4 * half) & 0xf;
}

} // namespace

TEST_CASE("rows become the nearest integers of 16 or 8 bits") {
  for (int bits : {16, 8}) {
    CAPTURE(bits);
    for_each_table([&](const QuantizedLoops& loops) {
      auto x = noise(2 * kDepth, 1);
      std::fill_n(x.begin() + 64, 64, 0.0f);
      Integers rows(loops, x, bits);
      for (int i = 0; i < 2 * kDepth; ++i) {
        double back = double(rows.integers[i]) * rows.scales[i / 64];
        CHECK(std::fabs(back - x[i]) <= 0.501 * rows.scales[i / 64]);
        CHECK(std::abs(rows.integers[i]) <= quantized_limit(bits));
      }
      for (int g = 0; g < 2 * kGroups; ++g) {
        int total = 0;
        for (int k = 0; k < 64; ++k) {
          total += rows.integers[g * 64 + k];
        }
        CHECK(rows.sums[g] == rows.scales[g] * total);
      }
    });
  }
}

TEST_CASE("every table gives the same integers") {
  auto x = noise(4 * kDepth, 3);
  x[10] = 1e30f;
  x[100] = 1e-40f;
  for (int bits : {16, 8}) {
    CAPTURE(bits);
    Integers expected(plain(), x, bits);
    for_each_table([&](const QuantizedLoops& loops) {
      Integers rows(loops, x, bits);
      CHECK(rows.integers == expected.integers);
      CHECK(same_bits(rows.scales, expected.scales));
      CHECK(same_bits(rows.sums, expected.sums));
    });
  }
}

TEST_CASE("a quantized tile is the sum of its groups, rounded once a step") {
  for (auto [row_bits, bits] : kFormats) {
    CAPTURE(row_bits);
    CAPTURE(bits);
    auto tile = some_tile(bits);
    auto x = noise(2 * kDepth, 1);
    Integers rows(plain(), x, row_bits);
    std::vector<float> expected;
    for (int r = 0; r < 2; ++r) {
      for (int c = 0; c < kQuantizedTile; ++c) {
        float y = 0.0f;
        for (int g = 0; g < kGroups; ++g) {
          const uint8_t* group = tile.data() + g * quantized_group_bytes(bits);
          int sum = 0;
          for (int k = 0; k < kQuantizedGroup; ++k) {
            sum += code_at(group, bits, c, k) *
                rows.integers[r * kDepth + g * kQuantizedGroup + k];
          }
          float scales[2 * kQuantizedTile];
          simd().unpack[static_cast<int>(Storage::f16)](
              group + quantized_bytes(bits), 2 * kQuantizedTile, scales);
          int at = r * kGroups + g;
          y = std::fma(scales[c], float(sum) * rows.scales[at], y);
          y = std::fma(scales[kQuantizedTile + c], rows.sums[at], y);
        }
        expected.push_back(y);
      }
    }
    for_each_table([&](const QuantizedLoops& loops) {
      std::vector<float> y(2 * kQuantizedTile);
      QuantizedTileArgs a{
          .x = rows.view(loops),
          .tiles = {tile.data(), nullptr},
          .y = {y.data(), nullptr},
          .y_stride = kQuantizedTile};
      multiply(loops, bits, a);
      CHECK(same_bits(y, expected));
    });
  }
}

TEST_CASE("every table gives the same products, of any number of rows") {
  for (auto [row_bits, bits] : kFormats) {
    CAPTURE(row_bits);
    CAPTURE(bits);
    auto tile = some_tile(bits);
    for (int count : {1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 16, 17, 300}) {
      CAPTURE(count);
      auto x = noise(count * kDepth, 1);
      Integers rows(plain(), x, row_bits);
      int stride = kQuantizedTile + 3;
      auto run = [&](const QuantizedLoops& loops) {
        std::vector<float> y(count * stride, -7.0f);
        QuantizedTileArgs a{
            .x = rows.view(loops),
            .tiles = {tile.data(), nullptr},
            .y = {y.data(), nullptr},
            .y_stride = stride};
        multiply(loops, bits, a);
        return y;
      };
      auto expected = run(plain());
      for (int r = 0; r < count; ++r) {
        CHECK(expected[r * stride + kQuantizedTile] == -7.0f);
      }
      for_each_table([&](const QuantizedLoops& loops) {
        CHECK(same_bits(run(loops), expected));
      });
    }
  }
}

TEST_CASE("rows under taps have the products of rows laid side by side") {
  // Three taps of one group, 2 rows apart, for every third row.
  constexpr int taps = kGroups, tap_step = 2, row_step = 3;
  for (auto [row_bits, bits] : kFormats) {
    CAPTURE(row_bits);
    CAPTURE(bits);
    auto tile = some_tile(bits);
    for (int count : {1, 2, 10, 37}) {
      CAPTURE(count);
      int inputs = (count - 1) * row_step + (taps - 1) * tap_step + 1;
      inputs += (kGroups - inputs % kGroups) % kGroups;
      auto x = noise(inputs * kQuantizedGroup, 1);
      std::vector<float> beside;
      for (int r = 0; r < count; ++r) {
        for (int tap = 0; tap < taps; ++tap) {
          auto from =
              x.begin() + (r * row_step + tap * tap_step) * kQuantizedGroup;
          beside.insert(beside.end(), from, from + kQuantizedGroup);
        }
      }
      Integers rows(plain(), x, row_bits);
      Integers gathered(plain(), beside, row_bits);
      for_each_table([&](const QuantizedLoops& loops) {
        QuantizedRows windows = rows.view(loops);
        windows.rows = count;
        windows.groups = 1;
        windows.taps = taps;
        windows.row_step = row_step;
        windows.tap_step = tap_step;
        auto run = [&](const QuantizedRows& each) {
          std::vector<float> y(count * kQuantizedTile);
          multiply(
              loops,
              bits,
              {.x = each,
               .tiles = {tile.data(), nullptr},
               .y = {y.data(), nullptr},
               .y_stride = kQuantizedTile});
          return y;
        };
        CHECK(same_bits(run(windows), run(gathered.view(loops))));
      });
    }
  }
}

TEST_CASE("two tiles have the products that each has alone") {
  for (auto [row_bits, bits] : kFormats) {
    CAPTURE(row_bits);
    CAPTURE(bits);
    auto whole = some_tile(bits);
    // The groups of the second are those of the first, turned round.
    auto other = whole;
    int bytes = quantized_group_bytes(bits);
    for (int g = 0; g < kGroups; ++g) {
      std::copy_n(
          whole.begin() + g * bytes,
          bytes,
          other.begin() + (kGroups - 1 - g) * bytes);
    }
    for (int count : {1, 2, 3, 16}) {
      CAPTURE(count);
      Integers rows(plain(), noise(count * kDepth, 1), row_bits);
      for_each_table([&](const QuantizedLoops& loops) {
        auto run = [&](const uint8_t* first, const uint8_t* second) {
          std::vector<float> y(2 * count * kQuantizedTile, -7.0f);
          float* behind = y.data() + count * kQuantizedTile;
          multiply(
              loops,
              bits,
              {.x = rows.view(loops),
               .tiles = {first, second},
               .y = {y.data(), second ? behind : nullptr},
               .y_stride = kQuantizedTile});
          return y;
        };
        auto both = run(whole.data(), other.data());
        auto first = run(whole.data(), nullptr);
        auto second = run(other.data(), nullptr);
        int size = count * kQuantizedTile;
        std::copy_n(second.begin(), size, first.begin() + size);
        CHECK(same_bits(both, first));
      });
    }
  }
}

TEST_CASE("every table quantizes to the same integers") {
  auto w = noise(50 * kDepth, 4);
  std::fill_n(w.begin(), 64, 0.0f);
  std::fill_n(w.begin() + 64, 64, -2.5f);
  for (int bits : {8, 4}) {
    auto run = [&](const QuantizedLoops& loops) {
      std::vector<uint8_t> quantized(w.size());
      std::vector<uint16_t> scales(2 * w.size() / 64);
      CHECK(loops.encode(
          w.data(),
          w.size() / 64,
          bits,
          quantized.data(),
          scales.data(),
          scales.data() + w.size() / 64));
      return std::pair{quantized, scales};
    };
    auto expected = run(plain());
    for_each_table(
        [&](const QuantizedLoops& loops) { CHECK(run(loops) == expected); });
  }
}
