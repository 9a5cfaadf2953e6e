#pragma once

#include <immintrin.h>

#include "nightingale/ops/cpu/half_bits.h"

namespace {

struct Vec {
  __m512 v;
  static constexpr int width = 16;
  static constexpr int row_block = 4;

  static Vec zero() {
    return {_mm512_setzero_ps()};
  }
  static Vec set1(float x) {
    return {_mm512_set1_ps(x)};
  }
  static Vec load(const float* p) {
    return {_mm512_loadu_ps(p)};
  }
  static Vec load(const f16* p) {
    return {_mm512_cvtph_ps(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Vec load(const bf16* p) {
    __m512i wide = _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
  void store(float* p) const {
    _mm512_storeu_ps(p, v);
  }
  void store(f16* p) const {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p),
        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void store(bf16* p) const {
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(
        bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __m512i result = _mm512_mask_blend_epi32(nan, rounded, quiet);
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p),
        _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16)));
  }
  float sum() const {
    return _mm512_reduce_add_ps(v);
  }
  float max_lane() const {
    return _mm512_reduce_max_ps(v);
  }
};

inline Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
inline Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
inline Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
inline Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm512_max_ps(a.v, b.v)};
}
inline Vec min(Vec a, Vec b) {
  return {_mm512_min_ps(a.v, b.v)};
}
inline Vec round(Vec x) {
  return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT)};
}
inline Vec scale_by_power_of_two(Vec x, Vec n) {
  return {_mm512_scalef_ps(x.v, n.v)};
}

#include "nightingale/ops/cpu/exp_poly.inl"

} // namespace
