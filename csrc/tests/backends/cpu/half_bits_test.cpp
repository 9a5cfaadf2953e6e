#include <doctest/doctest.h>

#include "nightingale/backends/cpu/simd.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;
using cpu::Simd;
using cpu::Storage;

namespace {

struct Format {
  Storage storage;
  int exponent_bits, mantissa_bits;

  int bias() const {
    return (1 << (exponent_bits - 1)) - 1;
  }
  uint32_t infinity() const {
    return ((1u << exponent_bits) - 1) << mantissa_bits;
  }

  // By the definition of IEEE 754.
  double value(uint32_t bits) const {
    int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    int mantissa = bits & ((1 << mantissa_bits) - 1);
    double sign = bits >> 15 ? -1.0 : 1.0;
    if ((bits & 0x7fff) >= infinity()) {
      return mantissa ? NAN : sign * INFINITY;
    }
    int least = 1 - bias() - mantissa_bits;
    return exponent == 0 ? sign * std::ldexp(mantissa, least)
                         : sign *
            std::ldexp(mantissa + (1 << mantissa_bits), exponent - 1 + least);
  }
};

constexpr Format kFormats[] = {{Storage::f16, 5, 10}, {Storage::bf16, 8, 7}};

// Packs all at once, through vectors, or one by one, through the scalar tail.
std::vector<uint16_t> pack(
    const Simd& simd,
    Storage storage,
    const std::vector<float>& x,
    bool one_by_one) {
  std::vector<uint16_t> bits(x.size());
  auto run = simd.pack[static_cast<int>(storage)];
  if (!one_by_one) {
    run(x.data(), x.size(), bits.data());
  }
  for (size_t i = 0; one_by_one && i < x.size(); ++i) {
    run(&x[i], 1, &bits[i]);
  }
  return bits;
}

std::vector<float> unpack(
    const Simd& simd,
    Storage storage,
    const std::vector<uint16_t>& bits,
    bool one_by_one) {
  std::vector<float> x(bits.size());
  auto run = simd.unpack[static_cast<int>(storage)];
  if (!one_by_one) {
    run(bits.data(), bits.size(), x.data());
  }
  for (size_t i = 0; one_by_one && i < bits.size(); ++i) {
    run(&bits[i], 1, &x[i]);
  }
  return x;
}

// What is packed for x, where the nearest half is `expected`: 0 for a subnormal
// number where the processor's own rounding takes it as 0.
uint16_t packed(
    const Simd& simd,
    Storage storage,
    bool one_by_one,
    float x,
    uint16_t expected) {
  bool takes_as_zero = std::string(simd.name) == "avx512bf16" &&
      storage == Storage::bf16 && !one_by_one;
  bool subnormal = std::fpclassify(x) == FP_SUBNORMAL;
  return takes_as_zero && subnormal ? expected & 0x8000 : expected;
}

template <typename F>
void for_each_way(F body) {
  for (int i = 0; i < cpu::simd_count(); ++i) {
    for (const Format& format : kFormats) {
      for (bool one_by_one : {false, true}) {
        std::string table = cpu::simd_at(i).name;
        CAPTURE(table);
        CAPTURE(format.exponent_bits);
        CAPTURE(one_by_one);
        body(cpu::simd_at(i), format, one_by_one);
      }
    }
  }
}

} // namespace

TEST_CASE("all 65536 halves unpack exactly and pack to themselves") {
  std::vector<uint16_t> bits(65536);
  for (int i = 0; i < 65536; ++i) {
    bits[i] = i;
  }
  for_each_way([&](const Simd& simd, const Format& format, bool one_by_one) {
    auto x = unpack(simd, format.storage, bits, one_by_one);
    auto back = pack(simd, format.storage, x, one_by_one);
    int wrong = 0;
    for (int i = 0; i < 65536; ++i) {
      double expected = format.value(i);
      if (std::isnan(expected)) {
        wrong += !std::isnan(x[i]) || !std::isnan(format.value(back[i]));
      } else {
        wrong += x[i] != expected || std::signbit(x[i]) != (i >> 15);
        wrong += back[i] != packed(simd, format.storage, one_by_one, x[i], i);
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("packing rounds to the nearest half, ties to even") {
  for_each_way([&](const Simd& simd, const Format& format, bool one_by_one) {
    std::vector<float> x;
    std::vector<uint16_t> expected;
    for (uint32_t low = 0; low < format.infinity(); ++low) {
      double above = low + 1 == format.infinity()
          ? std::ldexp(1.0, format.bias() + 1)
          : format.value(low + 1);
      auto middle = static_cast<float>((format.value(low) + above) / 2);
      uint16_t even = low % 2 == 0 ? low : low + 1;
      x.insert(
          x.end(),
          {middle,
           std::nextafter(middle, 0.0f),
           std::nextafter(middle, INFINITY),
           -middle});
      expected.insert(
          expected.end(),
          {even, uint16_t(low), uint16_t(low + 1), uint16_t(even | 0x8000)});
    }
    for (size_t i = 0; i < x.size(); ++i) {
      expected[i] = packed(simd, format.storage, one_by_one, x[i], expected[i]);
    }
    CHECK(pack(simd, format.storage, x, one_by_one) == expected);
  });
}

TEST_CASE("packing keeps infinities, NaNs, and what is too large or small") {
  for_each_way([&](const Simd& simd, const Format& format, bool one_by_one) {
    constexpr float most = std::numeric_limits<float>::max();
    std::vector<float> x{INFINITY, -INFINITY, most, -most, 1e-45f, -0.0f};
    std::vector<float> many;
    for (int i = 0; i < 16; ++i) {
      many.insert(many.end(), x.begin(), x.end());
    }
    auto bits = pack(simd, format.storage, many, one_by_one);
    uint16_t infinity = format.infinity();
    CHECK(bits[0] == infinity);
    CHECK(bits[1] == (infinity | 0x8000));
    CHECK(bits[2] == infinity);
    CHECK(bits[3] == (infinity | 0x8000));
    CHECK(bits[4] == 0);
    CHECK(bits[5] == 0x8000);
    for (float nan : {NAN, -NAN}) {
      std::vector<float> nans(20, nan);
      for (uint16_t b : pack(simd, format.storage, nans, one_by_one)) {
        CHECK(std::isnan(format.value(b)));
      }
    }
  });
}
