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
  float sum() const {
    return v;
  }
  float max_lane() const {
    return v;
  }
};

inline Vec operator+(Vec a, Vec b) {
  return {a.v + b.v};
}
inline Vec operator-(Vec a, Vec b) {
  return {a.v - b.v};
}
inline Vec operator*(Vec a, Vec b) {
  return {a.v * b.v};
}
inline Vec operator/(Vec a, Vec b) {
  return {a.v / b.v};
}
// 1 / x within 2 ulp, for normal numbers.
inline Vec reciprocal(Vec x) {
  return Vec::set1(1.0f) / x;
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return {a.v * b.v + c.v};
}
// Rounded once on every processor.
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

// Two integers of 16 bits for each lane of a Vec.
struct Pairs {
  int v[2];

  static Pairs load(const uint8_t* p) {
    return {{p[0] | p[1] << 8, p[2] | p[3] << 8}};
  }
  static Pairs set1(const int16_t* pair) {
    return {{pair[0], pair[1]}};
  }
  template <int shift, int mask>
  Pairs bits() const {
    return {{v[0] >> shift & mask, v[1] >> shift & mask}};
  }
};

// Sums of products of pairs, exact as long as they fit in 32 bits.
struct PairSums {
  int32_t v;

  static PairSums zero() {
    return {0};
  }
  void add_products(Pairs a, Pairs b) {
    v += a.v[0] * b.v[0] + a.v[1] * b.v[1];
  }
  void add(PairSums other) {
    v += other.v;
  }
  Vec floats() const {
    return {static_cast<float>(v)};
  }
};

} // namespace
