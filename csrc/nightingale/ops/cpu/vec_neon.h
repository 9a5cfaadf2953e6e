#pragma once

#include <arm_neon.h>

#include "nightingale/ops/cpu/half_bits.h"

namespace {

struct Vec {
  float32x4_t v;
  static constexpr int width = 4;
  static constexpr int row_block = 4;

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
  void store(float* p) const {
    vst1q_f32(p, v);
  }
  void store(f16* p) const {
    vst1_u16(
        reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(v)));
  }
  void store(bf16* p) const {
    float lanes[width];
    store(lanes);
    for (int i = 0; i < width; ++i) {
      narrow(lanes[i], p + i);
    }
  }
  float sum() const {
    return vaddvq_f32(v);
  }
  float max_lane() const {
    return vmaxvq_f32(v);
  }
};

inline Vec operator+(Vec a, Vec b) {
  return {vaddq_f32(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {vsubq_f32(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {vmulq_f32(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {vdivq_f32(a.v, b.v)};
}
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
inline Vec scale_by_power_of_two(Vec x, Vec n) {
  int32x4_t exponent = vshlq_n_s32(vcvtnq_s32_f32(n.v), 23);
  return {
      vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x.v), exponent))};
}

#include "nightingale/ops/cpu/exp_poly.inl"

} // namespace
