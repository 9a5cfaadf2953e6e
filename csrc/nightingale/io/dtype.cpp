#include "nightingale/io/dtype.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace nightingale {

static_assert(
    std::endian::native == std::endian::little,
    "checkpoints hold little-endian elements, which are used as they are");

namespace {

struct NamedDtype {
  mx::Dtype dtype;
  std::string_view name;
  std::string_view stored; // its name in a safetensors file
};

constexpr NamedDtype dtypes[] = {
    {mx::bool_, "bool", "BOOL"},
    {mx::uint8, "uint8", "U8"},
    {mx::uint16, "uint16", "U16"},
    {mx::uint32, "uint32", "U32"},
    {mx::uint64, "uint64", "U64"},
    {mx::int8, "int8", "I8"},
    {mx::int16, "int16", "I16"},
    {mx::int32, "int32", "I32"},
    {mx::int64, "int64", "I64"},
    {mx::float16, "float16", "F16"},
    {mx::float32, "float32", "F32"},
    {mx::float64, "float64", "F64"},
    {mx::bfloat16, "bfloat16", "BF16"},
    {mx::complex64, "complex64", ""}};

std::optional<mx::Dtype> find(
    std::string_view NamedDtype::* name,
    std::string_view wanted) {
  auto found = std::ranges::find(dtypes, wanted, name);
  return found == std::end(dtypes) ? std::nullopt : std::optional(found->dtype);
}

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

// A byte other than 0 and 1 would not be a valid C++ bool.
struct Bool {
  uint8_t byte;
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

template <typename T>
constexpr bool is_float_type = std::is_floating_point_v<T> ||
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// As is_convertible, but for types that are the same.
template <typename From, typename To>
constexpr bool is_convertible_type = is_float_type<From>
    ? is_float_type<To>
    : std::is_same_v<To, int32_t> || std::is_same_v<To, int64_t>;

template <typename From, typename To>
size_t convert(const From* in, To* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if constexpr (is_float_type<From>) {
      out[i] = convert_float<From, To>(in[i]);
    } else if constexpr (std::is_same_v<From, Bool>) {
      out[i] = in[i].byte != 0;
    } else if (std::in_range<To>(in[i])) {
      out[i] = static_cast<To>(in[i]);
    } else {
      return i;
    }
  }
  return count;
}

// What `f` returns for a value of the elements' type; 0 for complex64.
template <typename F>
size_t with_type(mx::Dtype dtype, F f) {
  size_t result = 0;
  auto attempt = [&](mx::Dtype known, auto value) {
    if (known == dtype) {
      result = f(value);
    }
  };
  attempt(mx::bool_, Bool());
  attempt(mx::uint8, uint8_t());
  attempt(mx::uint16, uint16_t());
  attempt(mx::uint32, uint32_t());
  attempt(mx::uint64, uint64_t());
  attempt(mx::int8, int8_t());
  attempt(mx::int16, int16_t());
  attempt(mx::int32, int32_t());
  attempt(mx::int64, int64_t());
  attempt(mx::float16, Float16());
  attempt(mx::float32, float());
  attempt(mx::float64, double());
  attempt(mx::bfloat16, BFloat16());
  return result;
}

} // namespace

std::string dtype_name(mx::Dtype dtype) {
  return std::string(
      std::ranges::find(dtypes, dtype, &NamedDtype::dtype)->name);
}

std::optional<mx::Dtype> find_dtype(std::string_view name) {
  return find(&NamedDtype::name, name);
}

std::optional<mx::Dtype> find_stored_dtype(std::string_view name) {
  return name.empty() ? std::nullopt : find(&NamedDtype::stored, name);
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
    return convert(
        static_cast<const Bool*>(src), static_cast<uint8_t*>(dst), count);
  }
  if (from == to) {
    std::memcpy(dst, src, count * to.size());
    return count;
  }
  return with_type(from, [&]<typename From>(From) {
    return with_type(to, [&]<typename To>(To) -> size_t {
      if constexpr (is_convertible_type<From, To>) {
        return convert(
            static_cast<const From*>(src), static_cast<To*>(dst), count);
      }
      return 0;
    });
  });
}

} // namespace nightingale
