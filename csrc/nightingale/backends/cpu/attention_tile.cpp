#include "nightingale/backends/cpu/attention_tile.h"

#include <algorithm>

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/scratch.h"

namespace nightingale::cpu {

void weigh(const Attention& a, int row, float* weights) {
  int visible = a.visible_to(row);
  a.cache.dots(a.q + row * a.q_stride, a.k, visible, weights);
  simd().softmax(weights, visible, a.scale());
}

namespace {

struct Scores;
struct UnpackedKeys;
struct UnpackedValues;

void add_mass(const Attention& a, const float* weights, int visible) {
  for (int t = 0; a.mass && t < visible; ++t) {
    a.mass[t] += weights[t];
  }
}

void attend_row(const Attention& a, int row) {
  int visible = a.visible_to(row);
  float* weights = scratch<Scores>(visible);
  weigh(a, row, weights);
  add_mass(a, weights, visible);
  a.cache.weighted_sum(weights, a.v, visible, a.out + row * a.out_stride);
}

template <typename Tag>
const float* as_float(const char* rows, const CacheRows& cache, int count) {
  if (!cache.bits && cache.storage == Storage::f32) {
    return reinterpret_cast<const float*>(rows);
  }
  float* unpacked = scratch<Tag>(int64_t(count) * cache.depth);
  cache.unpack(rows, count, unpacked);
  return unpacked;
}

void attend_block(const Attention& a) {
  int visible = a.visible_to(a.rows - 1), depth = a.cache.depth;
  const float* k = as_float<UnpackedKeys>(a.k, a.cache, visible);
  const float* v = as_float<UnpackedValues>(a.v, a.cache, visible);
  float* weights = scratch<Scores>(int64_t(a.rows) * visible);
  gemm(
      a.rows,
      visible,
      depth,
      1.0f,
      a.q,
      a.q_stride,
      k,
      depth,
      Layout::transposed,
      0.0f,
      weights,
      visible);
  for (int row = 0; row < a.rows; ++row) {
    float* line = weights + int64_t(row) * visible;
    simd().softmax(line, a.visible_to(row), a.scale());
    add_mass(a, line, a.visible_to(row));
    std::fill(line + a.visible_to(row), line + visible, 0.0f);
  }
  gemm(
      a.rows,
      depth,
      visible,
      1.0f,
      weights,
      visible,
      v,
      depth,
      Layout::normal,
      0.0f,
      a.out,
      a.out_stride);
}

} // namespace

void weigh_span(const Attention& a, int rows, int begin, int count, float* y) {
  for (int r = 0; r < rows; ++r) {
    int row = a.rows - rows + r, visible = a.visible_to(row);
    float* weights = scratch<Scores>(visible);
    weigh(a, row, weights);
    for (int i = 0; i < count; ++i) {
      int at = begin + i;
      y[int64_t(r) * count + i] = at < visible ? weights[at] : 0.0f;
    }
  }
}

void attend(const Attention& whole, int begin, int end) {
  Attention a = whole;
  a.q += begin * whole.q_stride;
  a.out += begin * whole.out_stride;
  a.visible = whole.visible_to(begin);
  a.rows = end - begin;
  if (whole.rows > kDotRows) {
    attend_block(a);
    return;
  }
  for (int row = 0; row < a.rows; ++row) {
    attend_row(a, row);
  }
}

} // namespace nightingale::cpu
