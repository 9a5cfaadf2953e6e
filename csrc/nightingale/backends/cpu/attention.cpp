#include <algorithm>
#include <cstring>

#include "nightingale/backends/cpu/attention_tile.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

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

// Head `head` of batch row `b` over a row-major cache.
Attention cached_head(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int b,
    int head) {
  int depth = q.shape(2) / keys.shape(1);
  return {
      .q = row_of<float>(q, b, 0) + head * depth,
      .q_stride = q.strides(1),
      .rows = q.shape(1),
      .cache = CacheRows::of(keys, depth),
      .k = head_rows(keys, b, head),
      .visible = past + 1};
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
        int heads = in[0].shape(1), depth = x.shape(2) / heads;
        auto rows = CacheRows::of(in[0], depth);
        for (int b = 0; b < x.shape(0); ++b) {
          for (int t = 0; t < x.shape(1); ++t) {
            const float* row = row_of<float>(x, b, t);
            for (int head = 0; head < heads; ++head) {
              char* to = head_rows(out[0], b, head) + (past + t) * rows.bytes;
              rows.pack(row + head * depth, to);
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
  check_caches(keys, values);
  return make_op(
      "CachedAttention",
      {q.shape()},
      {as_float(q, s), dense(keys, s), dense(values, s)},
      [past](const Arrays& in, Arrays& out) {
        const auto &q = in[0], &keys = in[1], &values = in[2];
        int rows = q.shape(1), heads = keys.shape(1);
        attend_heads(q.shape(0), heads, rows, [&](int b, int head) {
          Attention a = cached_head(q, keys, past, b, head);
          a.v = head_rows(values, b, head);
          a.out = out[0].data<float>() + int64_t(b) * rows * q.shape(2) +
              head * a.cache.depth;
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
