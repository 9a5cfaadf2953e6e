// Vectors of 64 in a cache: floats, BITS 32 or 16, or codes of BITS 8 or 4 as
// nightingale/ops/cache_codes.h has them: x = scale * code + offset, each half with
// a scale and an offset of its own.
#include "weights.h"

// Elements of C in a vector.
template <int BITS> METAL_FUNC int row_size() { return BITS < 16 ? 2 * BITS + 2 : 64; }

METAL_FUNC float scale_of(uint affine) { return as_type<float>(affine << 16); }
METAL_FUNC float offset_of(uint affine) { return as_type<float>(affine & 0xffff0000u); }

// Eight channels of a vector as they came from memory, so that all a lane needs
// can be under way at once.
template <typename C, int BITS> struct Held8 {
  float v[8];
  METAL_FUNC void load(const device C* row, int channel) { load8(row + channel, v); }
  METAL_FUNC void get(thread float* to) {
    for (int i = 0; i < 8; ++i) to[i] = v[i];
  }
};
template <typename C> struct Held8<C, 8> {
  uint low, high, affine;
  METAL_FUNC void load(const device C* row, int channel) {
    low = row[channel / 4];
    high = row[channel / 4 + 1];
    affine = row[16 + channel / 32];
  }
  METAL_FUNC void get(thread float* to) {
    float scale = scale_of(affine), offset = offset_of(affine);
    for (int i = 0; i < 4; ++i) {
      to[i] = fma(scale, float((low >> (8 * i)) & 255u), offset);
      to[i + 4] = fma(scale, float((high >> (8 * i)) & 255u), offset);
    }
  }
};
template <typename C> struct Held8<C, 4> {
  uint codes, affine;
  METAL_FUNC void load(const device C* row, int channel) {
    codes = row[channel / 8];
    affine = row[8 + channel / 32];
  }
  METAL_FUNC void get(thread float* to) {
    float scale = scale_of(affine), offset = offset_of(affine);
    for (int i = 0; i < 8; ++i) to[i] = fma(scale, float((codes >> (4 * i)) & 15u), offset);
  }
};

// The bits of the bfloat16 next to v, away from 0.
METAL_FUNC uint outward(float v) { return (as_type<uint>(v) + 0xffffu) & 0xffff0000u; }

METAL_FUNC bool not_finite(float v) { return (as_type<uint>(v) & 0x7f800000u) == 0x7f800000u; }

template <int BITS> METAL_FUNC uint code_of(float v, uint affine) {
  float scale = scale_of(affine), last = float((1 << BITS) - 1);
  float code = floor((v - offset_of(affine)) / (scale > 0.0f ? scale : 1.0f) + 0.5f);
  return uint(clamp(code, 0.0f, last));
}

// The scale and the offset of a half whose numbers a SIMD group has, one a lane.
template <int BITS> METAL_FUNC uint affine_of(float v) {
  float last = float((1 << BITS) - 1);
  uint offset = outward(min(simd_min(v), 0.0f));
  float most = max(simd_max(v), 0.0f);
  uint scale = outward(most / last - as_type<float>(offset) / last);
  uint affine = offset | (scale >> 16);
  return simd_max(not_finite(v) ? 1u : 0u) > 0u ? 0x7fc0u : affine;
}

// A SIMD group packs the 64 floats of x, which all its lanes can see, into a row
// of a cache, and makes x what the codes stand for.
template <int BITS> METAL_FUNC void pack_row(threadgroup float* x, device uint* row, int lane) {
  constexpr int EACH = 32 / BITS;
  float a = x[lane], b = x[lane + 32];
  uint low = affine_of<BITS>(a), high = affine_of<BITS>(b);
  if (lane < 2 * BITS) {
    uint packed = 0u, affine = lane < BITS ? low : high;
    for (int i = 0; i < EACH; ++i)
      packed |= code_of<BITS>(x[lane * EACH + i], affine) << (i * BITS);
    row[lane] = packed;
  }
  if (lane < 2) row[2 * BITS + lane] = lane == 0 ? low : high;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  x[lane] = fma(scale_of(low), float(code_of<BITS>(a, low)), offset_of(low));
  x[lane + 32] = fma(scale_of(high), float(code_of<BITS>(b, high)), offset_of(high));
}
