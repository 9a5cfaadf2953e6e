#include <algorithm>
#include <cmath>

#include "nightingale/error.h"
#include "nightingale/ops/cpu/blas.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/scratch.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

constexpr int kQueryRows = 64; // of one tile, when BLAS runs it

struct Scores;
struct UnpackedKeys;
struct UnpackedValues;

// Rows of queries of one head against its keys and values.
struct Attention {
  const float* q;
  int64_t q_stride;
  int rows;
  const void* k;
  const void* v;
  int64_t kv_stride;
  Storage storage;
  int visible; // keys that the first row sees
  bool causal; // each later row sees one more
  int depth;
  float* out;
  int64_t out_stride;

  int visible_to(int row) const {
    return causal ? visible + row : visible;
  }
  float scale() const {
    return 1.0f / std::sqrt(static_cast<float>(depth));
  }
};

// The softmax weights of one row.
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

// Runs rows [begin, end) of `whole`.
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

// Spreads blocks of query rows of every head over the threads.
template <typename HeadOf>
void attend_heads(int batch, int heads, int rows, HeadOf head_of) {
  int block = rows > kDotRows ? kQueryRows : 1;
  int blocks = (rows + block - 1) / block;
  parallel_for(batch * heads * blocks, [&](int tile) {
    int begin = tile % blocks * block;
    int head = tile / blocks % heads, b = tile / blocks / heads;
    attend(head_of(b, head), begin, std::min(rows, begin + block));
  });
}

// Head `head` of batch row `b` over a cache [B, heads, capacity, depth].
Attention cached_head(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int b,
    int head) {
  Attention a;
  a.depth = keys.shape(3);
  a.q = row_of<float>(q, b, 0) + head * a.depth;
  a.q_stride = q.strides(1);
  a.rows = q.shape(1);
  a.storage = storage_of(keys);
  a.k = keys.data<char>() +
      (b * keys.strides(0) + head * keys.strides(1)) * storage_bytes(a.storage);
  a.kv_stride = a.depth;
  a.visible = past + 1;
  a.causal = true;
  return a;
}

} // namespace

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream) {
  size_t count = 1;
  for (int size : shape) {
    count *= size;
  }
  return mx::array(
      mx::allocator::malloc(count * mx::size_of(dtype)), shape, dtype);
}

mx::array write_heads(
    const mx::array& cache,
    const mx::array& x,
    int past,
    mx::Stream s) {
  return make_op(
      "WriteHeads",
      {cache.shape(), cache.dtype(), 0},
      {dense(cache, s), as_rows(x, s)},
      [past](const Arrays& in, Arrays& out) {
        const auto& x = in[1];
        int heads = in[0].shape(1), capacity = in[0].shape(2);
        int depth = in[0].shape(3);
        Storage storage = storage_of(in[0]);
        auto pack = simd().pack[static_cast<int>(storage)];
        for (int b = 0; b < x.shape(0); ++b) {
          for (int t = 0; t < x.shape(1); ++t) {
            const float* row = row_of<float>(x, b, t);
            for (int head = 0; head < heads; ++head) {
              int64_t at =
                  ((int64_t(b) * heads + head) * capacity + past + t) * depth;
              pack(
                  row + head * depth,
                  depth,
                  out[0].data<char>() + at * storage_bytes(storage));
            }
          }
        }
      },
      s);
}

mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s) {
  if (keys.dtype() != values.dtype()) {
    throw Error("the caches of keys and values must be of one type");
  }
  return make_op(
      "CachedAttention",
      {q.shape()},
      {as_float(q, s), dense(keys, s), dense(values, s)},
      [past](const Arrays& in, Arrays& out) {
        const auto &q = in[0], &keys = in[1], &values = in[2];
        int rows = q.shape(1), heads = keys.shape(1);
        attend_heads(q.shape(0), heads, rows, [&](int b, int head) {
          Attention a = cached_head(q, keys, past, b, head);
          a.v = values.data<char>() +
              (b * values.strides(0) + head * values.strides(1)) *
                  storage_bytes(a.storage);
          a.out = out[0].data<float>() + int64_t(b) * rows * q.shape(2) +
              head * a.depth;
          a.out_stride = q.shape(2);
          return a;
        });
      },
      s);
}

mx::array attention_weights(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int head,
    int rows,
    int begin,
    int count,
    mx::Stream s) {
  return make_op(
      "AttentionWeights",
      {{rows, count}},
      {as_float(q, s), dense(keys, s)},
      [=](const Arrays& in, Arrays& out) {
        Attention a = cached_head(in[0], in[1], past, 0, head);
        for (int r = 0; r < rows; ++r) {
          int row = a.rows - rows + r;
          int visible = a.visible_to(row);
          float* weights = scratch<Scores>(visible);
          weigh(a, row, weights);
          float* y = out[0].data<float>() + int64_t(r) * count;
          for (int i = 0; i < count; ++i) {
            y[i] = begin + i < visible ? weights[begin + i] : 0.0f;
          }
        }
      },
      s);
}

mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s) {
  return make_op(
      "FullAttention",
      {q.shape()},
      {as_float(q, s), as_float(k, s), as_float(v, s)},
      [heads](const Arrays& in, Arrays& out) {
        const auto &q = in[0], &k = in[1], &v = in[2];
        int rows = q.shape(1), channels = q.shape(2);
        attend_heads(q.shape(0), heads, rows, [&](int b, int head) {
          Attention a;
          a.depth = channels / heads;
          a.q = row_of<float>(q, b, 0) + head * a.depth;
          a.q_stride = channels;
          a.rows = rows;
          a.storage = Storage::f32;
          a.k = row_of<float>(k, b, 0) + head * a.depth;
          a.v = row_of<float>(v, b, 0) + head * a.depth;
          a.kv_stride = channels;
          a.visible = k.shape(1);
          a.causal = false;
          a.out = out[0].data<float>() + int64_t(b) * rows * channels +
              head * a.depth;
          a.out_stride = channels;
          return a;
        });
      },
      s);
}

} // namespace nightingale::cpu
