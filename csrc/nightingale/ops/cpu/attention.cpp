#include <algorithm>
#include <cstring>

#include "nightingale/error.h"
#include "nightingale/ops/cpu/attention_tile.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

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

mx::array fork_cache(
    const mx::array& prefix,
    int length,
    int batch,
    int capacity,
    mx::Stream s) {
  int heads = prefix.shape(1), depth = prefix.shape(3);
  return make_op(
      "ForkCache",
      {{batch, heads, capacity, depth}, prefix.dtype()},
      {dense(prefix, s)},
      [=](const Arrays& in, Arrays& out) {
        int64_t row_bytes = depth * in[0].itemsize();
        for (int i = 0; i < batch * heads; ++i) {
          std::memcpy(
              out[0].data<char>() + i * capacity * row_bytes,
              in[0].data<char>() + i % heads * in[0].shape(2) * row_bytes,
              length * row_bytes);
        }
      },
      s);
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
        weigh_span(a, rows, begin, count, out[0].data<float>());
      },
      s);
}

} // namespace nightingale::cpu
