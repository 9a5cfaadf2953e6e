#include "nightingale/backends/cpu/attention_heads.h"

#include <algorithm>

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::cpu {

namespace {

struct Scores;
struct UnpackedKeys;
struct UnpackedValues;
struct Angles;
struct RotatedHead;

const uint32_t* words(const char* rows) {
  return reinterpret_cast<const uint32_t*>(rows);
}

} // namespace

CacheRows CacheRows::of(const mx::array& cache, int depth) {
  int bits = ops::quantized_bits(cache, depth);
  return {
      depth,
      bits,
      bits ? Storage::f32 : storage_of(cache),
      int64_t(cache.shape(3)) * static_cast<int64_t>(cache.itemsize())};
}

void CacheRows::pack(const float* x, char* row) const {
  if (bits) {
    auto* quantized = reinterpret_cast<uint32_t*>(row);
    simd().cache.pack[quantized_index(bits)](x, depth, quantized);
  } else {
    simd().pack[static_cast<int>(storage)](x, depth, row);
  }
}

void CacheRows::unpack(const char* rows, int count, float* y) const {
  if (bits) {
    simd().cache.unpack[quantized_index(bits)](words(rows), count, depth, y);
  } else {
    simd().unpack[static_cast<int>(storage)](rows, int64_t(count) * depth, y);
  }
}

void CacheRows::dots(const float* x, const char* rows, int count, float* y)
    const {
  if (bits) {
    simd().cache.dots[quantized_index(bits)](x, words(rows), count, depth, y);
    return;
  }
  DotArgs args;
  args.x = x;
  args.x_stride = depth;
  args.rows = 1;
  args.w = rows;
  args.w_stride = depth;
  args.columns = count;
  args.depth = depth;
  args.y = y;
  args.y_stride = count;
  simd().dots[static_cast<int>(storage)](args);
}

void CacheRows::weighted_sum(
    const float* p,
    const char* rows,
    int count,
    float* out) const {
  if (bits) {
    simd().cache.weighted_sum[quantized_index(bits)](
        p, words(rows), count, depth, out);
  } else {
    simd().weighted_sum[static_cast<int>(storage)](
        p, count, rows, depth, depth, out);
  }
}

void check_caches(const mx::array& keys, const mx::array& values) {
  if (keys.dtype() != values.dtype() || keys.shape(3) != values.shape(3)) {
    throw Error("the caches of keys and values must be of one type");
  }
}

void weigh(const Attention& a, int row, float* weights) {
  int visible = a.visible_to(row);
  a.cache.dots(a.q + row * a.q_stride, a.k, visible, weights);
  simd().softmax(weights, visible, a.scale());
}

namespace {

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
      a.q,
      a.q_stride,
      k,
      depth,
      Layout::transposed,
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
      weights,
      visible,
      v,
      depth,
      Layout::normal,
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

namespace {

// What one head of one batch row needs: its place in qkv and in the caches.
struct Head {
  const LayerAttention& layer;
  int b;
  int head;
  char* keys; // of this head: `capacity` vectors
  char* values;
  int place; // where the new positions go

  const float* row(int t, int part) const {
    int64_t at = int64_t(b) * layer.length + t;
    int depth = layer.rows.depth;
    return layer.qkv + ((3 * at + part) * layer.heads + head) * depth;
  }
};

// x, a vector of position t, rotated into y where the layer has angles.
const float* rotated(const Head& h, int t, const float* x, float* y) {
  if (!h.layer.angles) {
    return x;
  }
  int half = h.layer.rows.depth / 2;
  const float* cosine = h.layer.angles + int64_t(t) * 2 * half;
  rotate_head(x, cosine, cosine + half, half, y);
  return y;
}

// Rotates the head's queries into `queries` and its keys into the cache, and
// writes its values.
void rotate_and_write(const Head& h, float* queries, float* key) {
  const CacheRows& cache = h.layer.rows;
  for (int t = 0; t < h.layer.length; ++t) {
    float* query = queries + int64_t(t) * cache.depth;
    const float* from = rotated(h, t, h.row(t, 0), query);
    if (from != query) {
      std::copy_n(from, cache.depth, query);
    }
    int64_t at = (h.place + t) * cache.bytes;
    cache.pack(rotated(h, t, h.row(t, 1), key), h.keys + at);
    cache.pack(h.row(t, 2), h.values + at);
  }
}

} // namespace

void LayerAttention::run_head(int b, int head) const {
  int depth = rows.depth;
  int64_t width = int64_t(heads) * depth, tile = int64_t(b) * heads + head;
  int place = past - (dropped ? dropped[tile] : 0);
  Head h{
      *this,
      b,
      head,
      head_rows(keys, b, head),
      head_rows(values, b, head),
      place};
  float* queries = scratch<RotatedHead>(int64_t(length + 1) * depth);
  rotate_and_write(h, queries, queries + int64_t(length) * depth);
  Attention a{
      .q = queries,
      .q_stride = depth,
      .rows = length,
      .cache = rows,
      .k = h.keys,
      .v = h.values,
      .visible = place + 1,
      .out = out + b * length * width + head * depth,
      .out_stride = width};
  if (mass) {
    a.mass = mass + tile * capacity;
    std::fill_n(a.mass + place, length, 0.0f);
  }
  for (int begin = 0; begin < length; begin += kQueryRows) {
    attend(a, begin, std::min(length, begin + kQueryRows));
  }
  for (size_t i = 0; i < watch.heads.size(); ++i) {
    if (b == 0 && watch.heads[i] == head) {
      float* y = weights[i].data<float>();
      weigh_span(a, watch.rows, watch.begin, watch.count, y);
    }
  }
}

namespace {

// position(i): that of row i
template <typename F>
const float* make_angles(const mx::array& frequencies, int rows, F position) {
  int half = frequencies.size(), depth = 2 * half;
  float* angles = scratch<Angles>(int64_t(rows) * depth);
  parallel_for(rows, [&](int i) {
    float* cosine = angles + int64_t(i) * depth;
    rotary_angles(
        frequencies.data<float>(), half, position(i), cosine, cosine + half);
  });
  return angles;
}

} // namespace

const float* angles_from(const mx::array& frequencies, int past, int length) {
  return make_angles(frequencies, length, [&](int t) { return past + t; });
}

const float* angles_at(
    const mx::array& frequencies,
    std::span<const int> positions) {
  return make_angles(
      frequencies, positions.size(), [&](int i) { return positions[i]; });
}

} // namespace nightingale::cpu
