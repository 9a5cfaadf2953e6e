#include "nightingale/io/dtype.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace nightingale {

static_assert(
    std::endian::native == std::endian::little,
    "checkpoints hold little-endian elements, which are used as they are");

namespace {

constexpr std::pair<mx::Dtype, std::string_view> dtypes[] = {
    {mx::bool_, "bool"},
    {mx::uint8, "uint8"},
    {mx::uint16, "uint16"},
    {mx::uint32, "uint32"},
    {mx::uint64, "uint64"},
    {mx::int8, "int8"},
    {mx::int16, "int16"},
    {mx::int32, "int32"},
    {mx::int64, "int64"},
    {mx::float16, "float16"},
    {mx::float32, "float32"},
    {mx::float64, "float64"},
    {mx::bfloat16, "bfloat16"},
    {mx::complex64, "complex64"}};

} // namespace

uint16_t float16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;

  // Written as selects, not branches, so that the loop over elements
  // vectorises.
  uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  uint32_t infinite = magnitude > 0x7f800000 ? nan : 0x7c00;
  // Adding 0.5 moves the unit of a float16 subnormal, 2^-24, to the last bit
  // of the sum, so the addition itself rounds.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<uint32_t>(0.5f);
  // Rebias the exponent from 127 to 15 and round away 13 bits of mantissa.
  uint32_t odd = (magnitude >> 13) & 1;
  uint32_t normal = (magnitude - (112u << 23) + 0xfff + odd) >> 13;

  uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x47800000 ? infinite : result;
  return static_cast<uint16_t>(sign | result);
}

uint16_t bfloat16_bits(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  // The quiet bit keeps a NaN whose payload is all in the dropped half.
  uint32_t nan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>(
      (bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

float float16_value(uint16_t half) {
  uint32_t sign = (half & 0x8000u) << 16;
  uint32_t magnitude = half & 0x7fffu;
  uint32_t shifted = magnitude << 13;
  uint32_t normal = shifted + (112u << 23);
  uint32_t infinite = shifted | 0x7f800000;
  uint32_t subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  uint32_t result = magnitude < 0x400 ? subnormal : normal;
  result = magnitude >= 0x7c00 ? infinite : result;
  return std::bit_cast<float>(sign | result);
}

float bfloat16_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

namespace {

struct Float16 {
  uint16_t bits;
};

struct BFloat16 {
  uint16_t bits;
};

// Rounds to float so that a second rounding to a shorter type gives what one
// rounding would have: the last bit is set wherever anything was lost.
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || value != value) {
    return nearest;
  }
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  double magnitude = value < 0 ? -value : value;
  uint32_t magnitude_bits = bits & 0x7fffffff;
  if (static_cast<double>(std::bit_cast<float>(magnitude_bits)) > magnitude) {
    --bits;
  }
  return std::bit_cast<float>(bits | 1);
}

template <typename From, typename To>
To convert_float(From value) {
  if constexpr (std::is_same_v<From, Float16>) {
    return convert_float<float, To>(float16_value(value.bits));
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return convert_float<float, To>(bfloat16_value(value.bits));
  } else if constexpr (
      std::is_same_v<From, double> &&
      (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>)) {
    return convert_float<float, To>(round_to_odd(value));
  } else if constexpr (std::is_same_v<To, Float16>) {
    return Float16{float16_bits(value)};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return BFloat16{bfloat16_bits(value)};
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
size_t convert_floats(const void* src, void* dst, size_t count) {
  auto* in = static_cast<const From*>(src);
  auto* out = static_cast<To*>(dst);
  for (size_t i = 0; i < count; ++i) {
    out[i] = convert_float<From, To>(in[i]);
  }
  return count;
}

template <typename From, typename To>
size_t convert_integers(const void* src, void* dst, size_t count) {
  auto* in = static_cast<const From*>(src);
  auto* out = static_cast<To*>(dst);
  for (size_t i = 0; i < count; ++i) {
    if (!std::in_range<To>(in[i])) {
      return i;
    }
    out[i] = static_cast<To>(in[i]);
  }
  return count;
}

// A byte other than 0 and 1 would not be a valid C++ bool.
template <typename To>
size_t convert_booleans(const void* src, void* dst, size_t count) {
  auto* in = static_cast<const uint8_t*>(src);
  auto* out = static_cast<To*>(dst);
  for (size_t i = 0; i < count; ++i) {
    out[i] = in[i] != 0;
  }
  return count;
}

template <typename To>
size_t
convert_to_float(const void* src, mx::Dtype from, void* dst, size_t count) {
  switch (from) {
    case mx::float16:
      return convert_floats<Float16, To>(src, dst, count);
    case mx::bfloat16:
      return convert_floats<BFloat16, To>(src, dst, count);
    case mx::float32:
      return convert_floats<float, To>(src, dst, count);
    default:
      return convert_floats<double, To>(src, dst, count);
  }
}

template <typename To>
size_t
convert_to_integer(const void* src, mx::Dtype from, void* dst, size_t count) {
  switch (from) {
    case mx::bool_:
      return convert_booleans<To>(src, dst, count);
    case mx::int8:
      return convert_integers<int8_t, To>(src, dst, count);
    case mx::int16:
      return convert_integers<int16_t, To>(src, dst, count);
    case mx::int32:
      return convert_integers<int32_t, To>(src, dst, count);
    case mx::int64:
      return convert_integers<int64_t, To>(src, dst, count);
    case mx::uint16:
      return convert_integers<uint16_t, To>(src, dst, count);
    case mx::uint32:
      return convert_integers<uint32_t, To>(src, dst, count);
    case mx::uint64:
      return convert_integers<uint64_t, To>(src, dst, count);
    default:
      return convert_integers<uint8_t, To>(src, dst, count);
  }
}

} // namespace

std::string dtype_name(mx::Dtype dtype) {
  for (auto& [known, name] : dtypes) {
    if (known == dtype) {
      return std::string(name);
    }
  }
  return "unknown";
}

std::optional<mx::Dtype> find_dtype(std::string_view name) {
  for (auto& [dtype, known] : dtypes) {
    if (known == name) {
      return dtype;
    }
  }
  return std::nullopt;
}

bool is_float(mx::Dtype dtype) {
  return dtype == mx::float16 || dtype == mx::bfloat16 ||
      dtype == mx::float32 || dtype == mx::float64;
}

bool is_convertible(mx::Dtype from, mx::Dtype to) {
  if (from == to) {
    return true;
  }
  if (is_float(from)) {
    return is_float(to);
  }
  return from != mx::complex64 && (to == mx::int32 || to == mx::int64);
}

size_t convert_elements(
    const void* src,
    mx::Dtype from,
    void* dst,
    mx::Dtype to,
    size_t count) {
  if (from == mx::bool_ && to == mx::bool_) {
    return convert_booleans<uint8_t>(src, dst, count);
  }
  if (from == to) {
    std::memcpy(dst, src, count * to.size());
    return count;
  }
  switch (to) {
    case mx::float16:
      return convert_to_float<Float16>(src, from, dst, count);
    case mx::bfloat16:
      return convert_to_float<BFloat16>(src, from, dst, count);
    case mx::float32:
      return convert_to_float<float>(src, from, dst, count);
    case mx::float64:
      return convert_to_float<double>(src, from, dst, count);
    case mx::int32:
      return convert_to_integer<int32_t>(src, from, dst, count);
    default:
      return convert_to_integer<int64_t>(src, from, dst, count);
  }
}

} // namespace nightingale
