#pragma once

#include <cmath>

#include "nightingale/backends/cpu/half_bits.h"

// One lane: the reference that the vector versions are tested against.

namespace {

struct Vec {
  float v;
  static constexpr int width = 1;
  static constexpr int row_block = 2;
  static constexpr int large_row_block = 2;
  static constexpr int tile_rows = 4;
  static constexpr bool widens_pairs = false;
  static constexpr int pair_sums = 1;
  static constexpr int quantized_rows = 2;
  static constexpr int quantized_parts = 4;
  static constexpr int quantized_split_rows = 0;
  static constexpr int quantized_pair_rows = 0;

  static Vec zero() {
    return {0.0f};
  }
  static Vec set1(float x) {
    return {x};
  }
  template <typename T>
  static Vec load(const T* p) {
    return {widen(*p)};
  }
  template <typename T>
  void store(T* p) const {
    narrow(v, p);
  }
  void store(bf16* p) const;
  float sum() const {
    return v;
  }
  float max_lane() const {
    return v;
  }
};

#include "nightingale/backends/cpu/vec.inl"

inline Vec fma(Vec a, Vec b, Vec c) {
  return {a.v * b.v + c.v};
}
inline Vec fma_once(Vec a, Vec b, Vec c) {
  return {__builtin_fmaf(a.v, b.v, c.v)};
}
inline Vec max(Vec a, Vec b) {
  return {a.v > b.v ? a.v : b.v};
}
inline Vec min(Vec a, Vec b) {
  return {a.v < b.v ? a.v : b.v};
}
inline Vec floor(Vec x) {
  return {floorf(x.v)};
}
inline Vec abs(Vec x) {
  return {fabsf(x.v)};
}
inline Vec where_greater(Vec a, Vec b, Vec yes, Vec no) {
  return a.v > b.v ? yes : no;
}
inline Vec load_quantized(const uint8_t* row, int i, Bits<8>) {
  return {static_cast<float>(row[i])};
}
inline Vec load_quantized(const uint8_t* row, int i, Bits<4>) {
  return {static_cast<float>(row[i / 2] >> (i % 2 * 4) & 15)};
}
inline void transpose(Vec (&)[1]) {}
inline Vec exp(Vec x) {
  return {expf(x.v)};
}
inline Vec exp2_vec(Vec x) {
  return {exp2f(x.v)};
}
inline Vec coarse_exp2_vec(Vec x) {
  return exp2_vec(x);
}
inline Vec expm1(Vec x) {
  return {expm1f(x.v)};
}
inline Vec log_vec(Vec x) {
  return {logf(x.v)};
}
inline Vec sin_vec(Vec x) {
  return {sinf(x.v)};
}
inline Vec sin_squared_vec(Vec x) {
  return {sinf(x.v) * sinf(x.v)};
}

inline void PairSums::add_products(Pairs a, Pairs b) {
  auto signed_product = [&](int i) {
    return static_cast<int16_t>(a.v[i]) * static_cast<int16_t>(b.v[i]);
  };
  v[0] += signed_product(0) + signed_product(1);
}
inline Vec PairSums::floats() const {
  return {static_cast<float>(v[0][0])};
}

} // namespace
