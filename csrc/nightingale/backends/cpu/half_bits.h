#pragma once

#include <cstdint>
#include <cstring>

// Scalar float16 and bfloat16 conversions for the tails of the vector loops.
// In an unnamed namespace: each instruction set compiles its own copy, and the
// linker must not merge them.

namespace {

struct f16 {
  uint16_t bits;
};

struct bf16 {
  uint16_t bits;
};

// Quantized numbers of so many bits.
template <int bits>
struct Bits {};

inline float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

inline float widen(float value) {
  return value;
}

inline float widen(bf16 value) {
  return from_bits(static_cast<uint32_t>(value.bits) << 16);
}

inline float widen(f16 value) {
  uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  uint32_t magnitude = value.bits & 0x7fff;
  if (magnitude >= 0x7c00) { // inf, nan
    return from_bits(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13));
  }
  // Multiplying by 2^112 moves the exponent's bias and makes subnormals right.
  float scaled = from_bits(magnitude << 13) * from_bits(239u << 23);
  return from_bits(sign | to_bits(scaled));
}

inline void narrow(float value, float* out) {
  *out = value;
}

inline void narrow(float value, bf16* out) {
  uint32_t bits = to_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) {
    out->bits = static_cast<uint16_t>((bits >> 16) | 0x40);
    return;
  }
  bits += 0x7fff + ((bits >> 16) & 1);
  out->bits = static_cast<uint16_t>(bits >> 16);
}

inline void narrow(float value, f16* out) {
  uint32_t bits = to_bits(value);
  uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) {
    out->bits = sign | 0x7e00;
  } else if (bits >= 0x477ff000) { // rounds to 65536 or more
    out->bits = sign | 0x7c00;
  } else if (bits < 0x38800000) { // subnormal: let the adder round
    float shifted = from_bits(bits) + from_bits(126u << 23);
    out->bits = sign | static_cast<uint16_t>(to_bits(shifted) - (126u << 23));
  } else {
    bits += 0xfff + ((bits >> 13) & 1);
    out->bits = sign | static_cast<uint16_t>((bits - (112u << 23)) >> 13);
  }
}

} // namespace
