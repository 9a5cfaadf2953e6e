#pragma once

#include <arm_neon.h>

#include "nightingale/backends/cpu/half_bits.h"

namespace {

struct Vec {
  float32x4_t v;
  static constexpr int width = 4;
  static constexpr int row_block = 4;
  static constexpr int large_row_block = 6; // by 4 columns: 24 of 32 registers
  static constexpr int tile_rows = 8;
  static constexpr bool widens_pairs = true;
  static constexpr int pair_sums = 2;
  static constexpr int quantized_rows = 2; // by 4 vectors of 2 sums: 16 of 32
  static constexpr int quantized_parts = 4;
  static constexpr int quantized_split_rows = 0;
  static constexpr int quantized_pair_rows = 0;

  static Vec zero() {
    return {vdupq_n_f32(0.0f)};
  }
  static Vec set1(float x) {
    return {vdupq_n_f32(x)};
  }
  static Vec load(const float* p) {
    return {vld1q_f32(p)};
  }
  static Vec load(const f16* p) {
    return {vcvt_f32_f16(
        vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))))};
  }
  static Vec load(const bf16* p) {
    return {vreinterpretq_f32_u32(
        vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p)), 16))};
  }
  static void load_pair(const f16* p, Vec (&v)[2]) {
    float16x8_t both =
        vreinterpretq_f16_u16(vld1q_u16(reinterpret_cast<const uint16_t*>(p)));
    v[0].v = vcvt_f32_f16(vget_low_f16(both));
    v[1].v = vcvt_high_f32_f16(both);
  }
  // Interleaved with zeros: both vector units can do it, only one can shift.
  static void load_pair(const bf16* p, Vec (&v)[2]) {
    uint16x8_t both = vld1q_u16(reinterpret_cast<const uint16_t*>(p));
    uint16x8_t zeros = vdupq_n_u16(0);
    v[0].v = vreinterpretq_f32_u16(vzip1q_u16(zeros, both));
    v[1].v = vreinterpretq_f32_u16(vzip2q_u16(zeros, both));
  }
  void store(float* p) const {
    vst1q_f32(p, v);
  }
  void store(f16* p) const {
    vst1_u16(
        reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(v)));
  }
  void store(bf16* p) const;
  float sum() const {
    return vaddvq_f32(v);
  }
  float max_lane() const {
    return vmaxvq_f32(v);
  }
};

#include "nightingale/backends/cpu/vec.inl"

inline Vec fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.v, a.v, b.v)};
}
inline Vec max(Vec a, Vec b) {
  return {vmaxq_f32(a.v, b.v)};
}
inline Vec min(Vec a, Vec b) {
  return {vminq_f32(a.v, b.v)};
}
inline Vec round(Vec x) {
  return {vrndnq_f32(x.v)};
}
inline Vec floor(Vec x) {
  return {vrndmq_f32(x.v)};
}
inline Vec abs(Vec x) {
  return {vabsq_f32(x.v)};
}
inline Vec where_greater(Vec a, Vec b, Vec yes, Vec no) {
  return {vbslq_f32(vcgtq_f32(a.v, b.v), yes.v, no.v)};
}
inline Vec scale_by_power_of_two(Vec x, Vec n) {
  int32x4_t exponent = vshlq_n_s32(vcvtnq_s32_f32(n.v), 23);
  return {
      vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x.v), exponent))};
}

inline Split split(Vec x) {
  uint32x4_t bits = vreinterpretq_u32_f32(x.v), bias = vdupq_n_u32(127);
  int32x4_t exponent =
      vreinterpretq_s32_u32(vsubq_u32(vshrq_n_u32(bits, 23), bias));
  uint32x4_t mantissa =
      vorrq_u32(vandq_u32(bits, vdupq_n_u32(0x7fffff)), vshlq_n_u32(bias, 23));
  return {{vreinterpretq_f32_u32(mantissa)}, {vcvtq_f32_s32(exponent)}};
}

// Makes rows of columns: lane j of x[i] becomes lane i of x[j].
inline void transpose(Vec (&x)[Vec::width]) {
  float32x4x2_t top = vtrnq_f32(x[0].v, x[1].v);
  float32x4x2_t bottom = vtrnq_f32(x[2].v, x[3].v);
  for (int i = 0; i < 2; ++i) {
    float32x4_t a = top.val[i], b = bottom.val[i];
    x[i].v = vcombine_f32(vget_low_f32(a), vget_low_f32(b));
    x[i + 2].v = vcombine_f32(vget_high_f32(a), vget_high_f32(b));
  }
}

// Each pair's two sums side by side.
inline void PairSums::add_products(Pairs a, Pairs b) {
  auto first = vreinterpretq_s16_u16(a.v), second = vreinterpretq_s16_u16(b.v);
  v[0] = vmlal_s16(v[0], vget_low_s16(first), vget_low_s16(second));
  v[1] = vmlal_high_s16(v[1], first, second);
}
inline Vec PairSums::floats() const {
  return {vcvtq_f32_s32(vpaddq_s32(v[0], v[1]))};
}

// QuantizedTensor [i, i + width) of a row; i is a multiple of the width.
inline Vec load_quantized(const uint8_t* row, int i, Bits<8>) {
  uint32_t word;
  __builtin_memcpy(&word, row + i, 4);
  uint16x8_t quantized = vmovl_u8(vcreate_u8(word));
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(quantized)))};
}
inline Vec load_quantized(const uint8_t* row, int i, Bits<4>) {
  uint16_t word;
  __builtin_memcpy(&word, row + i / 2, 2);
  const int32x4_t shifts = {0, -4, -8, -12};
  uint32x4_t quantized =
      vandq_u32(vshlq_u32(vdupq_n_u32(word), shifts), vdupq_n_u32(15));
  return {vcvtq_f32_u32(quantized)};
}

#include "nightingale/backends/cpu/math.inl"

} // namespace
