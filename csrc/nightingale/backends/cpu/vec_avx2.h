#pragma once

#include <immintrin.h>

#include "nightingale/backends/cpu/half_bits.h"

namespace {

struct Vec {
  __m256 v;
  static constexpr int width = 8;
  static constexpr int row_block = 2; // 16 registers hold no more
  static constexpr int large_row_block = 2;
  static constexpr int tile_rows = 6; // by 2 vectors: 12 of 16
  static constexpr bool widens_pairs = false;
  static constexpr int pair_sums = 1;
  static constexpr int quantized_rows = 4; // by 2 vectors
  static constexpr int quantized_parts = 2;
  static constexpr int quantized_split_rows = 0;
  static constexpr int quantized_pair_rows = 0;

  static Vec zero() {
    return {_mm256_setzero_ps()};
  }
  static Vec set1(float x) {
    return {_mm256_set1_ps(x)};
  }
  static Vec load(const float* p) {
    return {_mm256_loadu_ps(p)};
  }
  static Vec load(const f16* p) {
    return {
        _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  static Vec load(const bf16* p) {
    __m256i wide = _mm256_cvtepu16_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, v);
  }
  void store(f16* p) const {
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  void store(bf16* p) const;
  float sum() const {
    __m128 x =
        _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    x = _mm_add_ss(x, _mm_shuffle_ps(x, x, 1));
    return _mm_cvtss_f32(x);
  }
  float max_lane() const {
    __m128 x =
        _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    x = _mm_max_ss(x, _mm_shuffle_ps(x, x, 1));
    return _mm_cvtss_f32(x);
  }
};

#include "nightingale/backends/cpu/vec.inl"

inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
inline Vec max(Vec a, Vec b) {
  return {_mm256_max_ps(a.v, b.v)};
}
inline Vec min(Vec a, Vec b) {
  return {_mm256_min_ps(a.v, b.v)};
}
inline Vec round(Vec x) {
  return {_mm256_round_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vec floor(Vec x) {
  return {_mm256_round_ps(x.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
inline Vec abs(Vec x) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x.v)};
}
inline Vec where_greater(Vec a, Vec b, Vec yes, Vec no) {
  __m256 greater = _mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ);
  return {_mm256_blendv_ps(no.v, yes.v, greater)};
}
inline Vec scale_by_power_of_two(Vec x, Vec n) {
  __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n.v), 23);
  return {_mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(x.v), exponent))};
}

inline Split split(Vec x) {
  __m256i bits = _mm256_castps_si256(x.v), bias = _mm256_set1_epi32(127);
  __m256i exponent = _mm256_sub_epi32(_mm256_srli_epi32(bits, 23), bias);
  __m256i mantissa = _mm256_or_si256(
      _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffff)),
      _mm256_slli_epi32(bias, 23));
  return {{_mm256_castsi256_ps(mantissa)}, {_mm256_cvtepi32_ps(exponent)}};
}

// Makes rows of columns: lane j of x[i] becomes lane i of x[j].
inline void transpose(Vec (&x)[Vec::width]) {
  __m256 t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(x[i].v, x[i + 1].v);
    t[i + 1] = _mm256_unpackhi_ps(x[i].v, x[i + 1].v);
  }
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    x[i].v = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    x[i + 4].v = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

inline void PairSums::add_products(Pairs a, Pairs b) {
  auto products = _mm256_madd_epi16(
      reinterpret_cast<__m256i>(a.v), reinterpret_cast<__m256i>(b.v));
  v[0] += reinterpret_cast<SignedWords>(products);
}
inline Vec PairSums::floats() const {
  return {_mm256_cvtepi32_ps(reinterpret_cast<__m256i>(v[0]))};
}

// QuantizedTensor [i, i + width) of a row; i is a multiple of the width.
inline Vec load_quantized(const uint8_t* row, int i, Bits<8>) {
  __m128i quantized =
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + i));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(quantized))};
}
inline Vec load_quantized(const uint8_t* row, int i, Bits<4>) {
  int word;
  __builtin_memcpy(&word, row + i / 2, 4);
  const __m256i shifts = _mm256_set_epi32(28, 24, 20, 16, 12, 8, 4, 0);
  __m256i quantized = _mm256_and_si256(
      _mm256_srlv_epi32(_mm256_set1_epi32(word), shifts),
      _mm256_set1_epi32(15));
  return {_mm256_cvtepi32_ps(quantized)};
}

#include "nightingale/backends/cpu/math.inl"

} // namespace
