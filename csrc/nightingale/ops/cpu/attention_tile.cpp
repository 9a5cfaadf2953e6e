#include "nightingale/ops/cpu/attention_tile.h"

#include <algorithm>

#include "nightingale/ops/cpu/blas.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/scratch.h"

namespace nightingale::cpu {

void weigh(const Attention& a, int row, float* weights) {
  DotArgs dots;
  dots.x = a.q + row * a.q_stride;
  dots.x_stride = a.q_stride;
  dots.rows = 1;
  dots.w = a.k;
  dots.w_stride = a.kv_stride;
  dots.columns = a.visible_to(row);
  dots.depth = a.depth;
  dots.y = weights;
  dots.y_stride = dots.columns;
  simd().dots[static_cast<int>(a.storage)](dots);
  simd().softmax(weights, dots.columns, a.scale());
}

namespace {

struct Scores;
struct UnpackedKeys;
struct UnpackedValues;

void attend_row(const Attention& a, int row) {
  int visible = a.visible_to(row);
  float* weights = scratch<Scores>(visible);
  weigh(a, row, weights);
  simd().weighted_sum[static_cast<int>(a.storage)](
      weights, visible, a.v, a.kv_stride, a.depth, a.out + row * a.out_stride);
}

template <typename Tag>
const float* as_float(const void* x, const Attention& a, int count) {
  if (a.storage == Storage::f32) {
    return static_cast<const float*>(x);
  }
  float* unpacked = scratch<Tag>(count * a.kv_stride);
  simd().unpack[static_cast<int>(a.storage)](x, count * a.kv_stride, unpacked);
  return unpacked;
}

void attend_block(const Attention& a) {
  int visible = a.visible_to(a.rows - 1);
  const float* k = as_float<UnpackedKeys>(a.k, a, visible);
  const float* v = as_float<UnpackedValues>(a.v, a, visible);
  float* weights = scratch<Scores>(int64_t(a.rows) * visible);
  gemm(
      a.rows,
      visible,
      a.depth,
      1.0f,
      a.q,
      a.q_stride,
      k,
      a.kv_stride,
      Layout::transposed,
      0.0f,
      weights,
      visible);
  for (int row = 0; row < a.rows; ++row) {
    float* line = weights + int64_t(row) * visible;
    simd().softmax(line, a.visible_to(row), a.scale());
    std::fill(line + a.visible_to(row), line + visible, 0.0f);
  }
  gemm(
      a.rows,
      a.depth,
      visible,
      1.0f,
      weights,
      visible,
      v,
      a.kv_stride,
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
