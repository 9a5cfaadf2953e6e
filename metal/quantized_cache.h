// Vectors of 64 in a cache: floats, BITS 32 or 16, or quantized, BITS 8 or 4, as
// nightingale/ops/quantized_cache.h defines them: x = scale * level + offset, each half with
// a scale and an offset of its own.
#include "weights.h"

// Elements of C in a vector.
template <int BITS> METAL_FUNC int row_size() { return BITS < 16 ? 2 * BITS + 2 : 64; }

#if BITS < 16
METAL_FUNC float scale_of(uint affine) { return as_type<float>(affine << 16); }
METAL_FUNC float offset_of(uint affine) { return as_type<float>(affine & 0xffff0000u); }
#endif

// Eight channels of a vector as they came from memory, so that all a lane needs
// can be under way at once.
template <typename C, int BITS> struct Held8 {
#if BITS < 16
  Quantized8 quantized;
  uint affine;
  METAL_FUNC void load(const device uint* row, int channel) thread {
    quantized.fetch(row + channel * BITS / 32);
    affine = row[2 * BITS + channel / 32];
  }
  METAL_FUNC void get(thread float* to) const thread {
    float scale = scale_of(affine), offset = offset_of(affine);
    quantized.unpack(to);
    for (int i = 0; i < 8; ++i) to[i] = fma(scale, to[i], offset);
  }
#else
  Raw8<C> raw;
  METAL_FUNC void load(const device C* row, int channel) thread { raw.fetch(row + channel); }
  METAL_FUNC void get(thread float* to) const thread { raw.unpack(to); }
#endif
};

#if BITS < 16
// The bits of the bfloat16 next to v, away from 0.
METAL_FUNC uint outward(float v) { return (as_type<uint>(v) + 0xffffu) & 0xffff0000u; }

METAL_FUNC bool not_finite(float v) { return (as_type<uint>(v) & 0x7f800000u) == 0x7f800000u; }

template <int BITS> METAL_FUNC uint quantize_value(float v, uint affine) {
  float scale = scale_of(affine), last = float((1 << BITS) - 1);
  float level = floor((v - offset_of(affine)) / (scale > 0.0f ? scale : 1.0f) + 0.5f);
  return uint(clamp(level, 0.0f, last));
}

// The scales and offsets of the two halves, of which a lane has a number each: on
// the lanes below 16 that of the first half, on the others that of the second.
template <int BITS> METAL_FUNC uint affine_of(float a, float b, int lane) {
  bool upper = lane >= 16;
  float own = upper ? b : a, other = simd_shuffle_xor(upper ? a : b, 16u);
  own = not_finite(own) ? INFINITY : own;
  other = not_finite(other) ? INFINITY : other;
  float least = min(own, other), most = max(own, other);
  for (uint mask = 8; mask > 0; mask >>= 1) {
    least = min(least, simd_shuffle_xor(least, mask));
    most = max(most, simd_shuffle_xor(most, mask));
  }
  float last = float((1 << BITS) - 1);
  uint offset = outward(min(least, 0.0f));
  uint scale = outward(max(most, 0.0f) / last - as_type<float>(offset) / last);
  return not_finite(most) ? 0x7fc0u : offset | (scale >> 16);
}

// The values of the lanes that share a word, in that word on each of them.
template <int BITS> METAL_FUNC uint packed(uint level, int lane) {
  constexpr int EACH = 32 / BITS;
  uint word = level << uint(lane % EACH * BITS);
  for (uint mask = 1; mask < uint(EACH); mask <<= 1) word |= simd_shuffle_xor(word, mask);
  return word;
}
#endif

// A SIMD group writes a vector, of which a lane has number `lane` and the one 32
// behind it, into a row of a cache, and makes its numbers the values read back.
template <int BITS, typename C>
METAL_FUNC void keep_row(thread float& a, thread float& b, device C* row, int lane) {
#if BITS < 16
  constexpr int EACH = 32 / BITS;
  uint affine = affine_of<BITS>(a, b, lane);
  uint low = simd_shuffle(affine, 0u), high = simd_shuffle(affine, 16u);
  uint first = quantize_value<BITS>(a, low), second = quantize_value<BITS>(b, high);
  uint first_word = packed<BITS>(first, lane), second_word = packed<BITS>(second, lane);
  if (lane % EACH == 0) {
    row[lane / EACH] = first_word;
    row[BITS + lane / EACH] = second_word;
  }
  if (lane < 2) row[2 * BITS + lane] = lane == 0 ? low : high;
  a = fma(scale_of(low), float(first), offset_of(low));
  b = fma(scale_of(high), float(second), offset_of(high));
#else
  C first = C(a), second = C(b);
  row[lane] = first;
  row[lane + 32] = second;
  a = float(first);
  b = float(second);
#endif
}
