#pragma once

#include <immintrin.h>

#include "nightingale/backends/cpu/half_bits.h"

namespace {

struct Vec {
  __m512 v;
  static constexpr int width = 16;
  static constexpr int row_block = 4;
  static constexpr int large_row_block = 6; // by 4 columns: 24 of 32 registers
  static constexpr int tile_rows = 14; // by 2 vectors: 28 of 32 registers
  static constexpr bool widens_pairs = false;
  static constexpr int pair_sums = 1;
  static constexpr int quantized_rows = 10; // by 2 vectors: 20 of 32
  static constexpr int quantized_parts = 2;
  static constexpr int quantized_split_rows =
      4; // up to which two sums take turns
  static constexpr int quantized_pair_rows =
      2; // up to which two tiles take turns

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
  void store(bf16* p) const;
  float sum() const {
    return _mm512_reduce_add_ps(v);
  }
  float max_lane() const {
    return _mm512_reduce_max_ps(v);
  }
};

#include "nightingale/backends/cpu/vec.inl"

inline Vec reciprocal(Vec x) {
  // An estimate and a Newton step: a division takes four times as long.
  __m512 y = _mm512_rcp14_ps(x.v);
  __m512 error = _mm512_fnmadd_ps(x.v, y, _mm512_set1_ps(1.0f));
  return {_mm512_fmadd_ps(y, error, y)};
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
inline Vec floor(Vec x) {
  return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEG_INF)};
}
inline Vec abs(Vec x) {
  return {_mm512_abs_ps(x.v)};
}
inline Vec where_greater(Vec a, Vec b, Vec yes, Vec no) {
  __mmask16 greater = _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ);
  return {_mm512_mask_blend_ps(greater, no.v, yes.v)};
}
inline Vec scale_by_power_of_two(Vec x, Vec n) {
  return {_mm512_scalef_ps(x.v, n.v)};
}

inline Split split(Vec x) {
  return {
      {_mm512_getmant_ps(x.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)},
      {_mm512_getexp_ps(x.v)}};
}

// Makes rows of columns: lane j of x[i] becomes lane i of x[j].
inline void transpose(Vec (&x)[Vec::width]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(x[i].v, x[i + 1].v);
    t[i + 1] = _mm512_unpackhi_ps(x[i].v, x[i + 1].v);
  }
  // Each 128-bit lane holds one column of four rows, then of eight, of sixteen.
  __m512 u[16];
  for (int i = 0; i < 16; i += 4) {
    u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(u[i], u[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(u[i], u[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    x[i].v = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    x[i + 8].v = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
  }
}

inline void PairSums::add_products(Pairs a, Pairs b) {
  auto first = reinterpret_cast<__m512i>(a.v);
  auto second = reinterpret_cast<__m512i>(b.v);
#if defined(__AVX512VNNI__)
  auto sum = reinterpret_cast<__m512i>(v[0]);
  v[0] = reinterpret_cast<SignedWords>(_mm512_dpwssd_epi32(sum, first, second));
#else
  v[0] += reinterpret_cast<SignedWords>(_mm512_madd_epi16(first, second));
#endif
}
inline Vec PairSums::floats() const {
  return {_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(v[0]))};
}

// QuantizedTensor [i, i + width) of a row; i is a multiple of the width.
inline Vec load_quantized(const uint8_t* row, int i, Bits<8>) {
  __m128i quantized =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(quantized))};
}
inline Vec load_quantized(const uint8_t* row, int i, Bits<4>) {
  // A word to each half of the lanes, and each its own four bits of it.
  const __m512i shifts = _mm512_set_epi32(
      28, 24, 20, 16, 12, 8, 4, 0, 28, 24, 20, 16, 12, 8, 4, 0);
  __m128i words =
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + i / 2));
  const __m512i halves =
      _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  __m512i spread =
      _mm512_permutexvar_epi32(halves, _mm512_castsi128_si512(words));
  __m512i quantized = _mm512_and_si512(
      _mm512_srlv_epi32(spread, shifts), _mm512_set1_epi32(15));
  return {_mm512_cvtepi32_ps(quantized)};
}

#include "nightingale/backends/cpu/math.inl"

} // namespace
