#include "nightingale/io/dtype.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace nightingale;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

template <typename To, typename From>
To convert_one(From value, mx::Dtype from, mx::Dtype to) {
  To result{};
  CHECK(convert_elements(&value, from, &result, to, 1) == 1);
  return result;
}

} // namespace

TEST_CASE("float16 survives the way to float32 and back, all 65536 of them") {
  int changed = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = float16_value(uint16_t(bits));
    bool is_nan = (bits & 0x7fff) > 0x7c00;
    changed += std::isnan(value) != is_nan;
    uint16_t back = float16_bits(value);
    changed += is_nan ? (back & 0x7fff) <= 0x7c00 : back != bits;
  }
  CHECK(changed == 0);
}

TEST_CASE("bfloat16 survives the way to float32 and back") {
  int changed = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = bfloat16_value(uint16_t(bits));
    bool is_nan = (bits & 0x7fff) > 0x7f80;
    changed += std::isnan(value) != is_nan;
    uint16_t back = bfloat16_bits(value);
    changed += is_nan ? (back & 0x7fff) <= 0x7f80 : back != bits;
  }
  CHECK(changed == 0);
}

TEST_CASE("float16 rounds to nearest even at every midpoint") {
  int wrong = 0;
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    float below = float16_value(low);
    float above = float16_value(low + 1);
    float middle = (below + above) / 2; // exact in float32
    uint16_t even = low % 2 == 0 ? low : low + 1;
    wrong += float16_bits(middle) != even;
    wrong += float16_bits(std::nextafter(middle, 0.0f)) != low;
    wrong += float16_bits(std::nextafter(middle, above)) != low + 1;
    wrong += float16_bits(-middle) != (even | 0x8000);
  }
  CHECK(wrong == 0);
  CHECK(float16_bits(65519.996f) == 0x7bff);
  CHECK(float16_bits(65520.0f) == 0x7c00);
  CHECK(float16_bits(1e30f) == 0x7c00);
  CHECK(float16_bits(-float(inf)) == 0xfc00);
  CHECK(float16_bits(0x1p-25f) == 0);
  CHECK(float16_bits(0x1.000002p-25f) == 1);
}

TEST_CASE("bfloat16 rounds to nearest even and keeps every NaN") {
  CHECK(bfloat16_bits(1.0f) == 0x3f80);
  CHECK(bfloat16_bits(std::bit_cast<float>(0x3f808000)) == 0x3f80);
  CHECK(bfloat16_bits(std::bit_cast<float>(0x3f818000)) == 0x3f82);
  CHECK(bfloat16_bits(std::bit_cast<float>(0x3f808001)) == 0x3f81);
  CHECK(bfloat16_bits(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(bfloat16_bits(std::bit_cast<float>(0x00000001)) == 0);
  uint16_t nan = bfloat16_bits(std::bit_cast<float>(0x7f800001));
  CHECK((nan & 0x7fff) > 0x7f80);
}

TEST_CASE("float64 is rounded once, not first to float32") {
  // Just above a midpoint: through float32 it would become the midpoint.
  double above = 1.0 + 0x1p-11 + 0x1p-40;
  CHECK(convert_one<uint16_t>(above, mx::float64, mx::float16) == 0x3c01);
  CHECK(convert_one<uint16_t>(-above, mx::float64, mx::float16) == 0xbc01);
  double below = 1.0 + 0x1p-8 - 0x1p-40;
  CHECK(convert_one<uint16_t>(below, mx::float64, mx::bfloat16) == 0x3f80);
  CHECK(convert_one<uint16_t>(1e300, mx::float64, mx::float16) == 0x7c00);
  CHECK(convert_one<uint16_t>(1e-300, mx::float64, mx::bfloat16) == 0);
  CHECK(convert_one<float>(0.1, mx::float64, mx::float32) == 0.1f);
  CHECK(convert_one<float>(-inf, mx::float64, mx::float32) == -float(inf));
  CHECK(std::isnan(convert_one<float>(
      std::numeric_limits<double>::quiet_NaN(), mx::float64, mx::float32)));
}

TEST_CASE("integers keep their value or stop at the one that does not fit") {
  std::vector<int64_t> values = {0, -1, INT32_MAX, INT64_C(1) << 31};
  std::vector<int32_t> narrow(4);
  CHECK(
      convert_elements(values.data(), mx::int64, narrow.data(), mx::int32, 4) ==
      3);
  CHECK(narrow[2] == INT32_MAX);
  CHECK(convert_one<int64_t>(uint8_t(200), mx::uint8, mx::int64) == 200);
  CHECK(convert_one<int32_t>(int8_t(-3), mx::int8, mx::int32) == -3);
  CHECK(convert_one<int32_t>(uint8_t(7), mx::bool_, mx::int32) == 1);
  uint64_t huge = UINT64_MAX;
  int64_t result = 0;
  CHECK(convert_elements(&huge, mx::uint64, &result, mx::int64, 1) == 0);
}

TEST_CASE("floats and integers are not converted into each other") {
  CHECK(is_convertible(mx::bfloat16, mx::float32));
  CHECK(is_convertible(mx::float64, mx::float16));
  CHECK(is_convertible(mx::int64, mx::int32));
  CHECK(is_convertible(mx::uint8, mx::uint8));
  CHECK_FALSE(is_convertible(mx::int64, mx::float32));
  CHECK_FALSE(is_convertible(mx::float32, mx::int32));
  CHECK_FALSE(is_convertible(mx::int64, mx::uint8));
}
