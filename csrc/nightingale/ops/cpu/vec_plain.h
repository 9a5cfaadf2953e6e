#pragma once

#include <cmath>

#include "nightingale/ops/cpu/half_bits.h"

// One lane: the twin the vector versions are tested against.

namespace {

struct Vec {
  float v;
  static constexpr int width = 1;
  static constexpr int row_block = 2;

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
inline Vec fma(Vec a, Vec b, Vec c) {
  return {a.v * b.v + c.v};
}
inline Vec max(Vec a, Vec b) {
  return {a.v > b.v ? a.v : b.v};
}
inline Vec exp(Vec x) {
  return {expf(x.v)};
}

} // namespace
