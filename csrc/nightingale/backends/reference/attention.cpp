#include <cmath>
#include <limits>

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/backends/reference/quantized_cache.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::reference {

namespace {

float scale_of(int head_dim) {
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

// [B, T, heads * head_dim] → [B, heads, T, head_dim]
mx::array split_heads(const mx::array& x, int heads, mx::Stream s) {
  auto split = mx::reshape(x, {x.shape(0), x.shape(1), heads, -1}, s);
  return mx::transpose(split, {0, 2, 1, 3}, s);
}

mx::array merge_heads(const mx::array& x, mx::Stream s) {
  auto rows = mx::transpose(x, {0, 2, 1, 3}, s);
  return mx::reshape(rows, {x.shape(0), x.shape(2), -1}, s);
}

mx::array filled(const mx::array& cache, int length, mx::Stream s) {
  mx::Shape stop = cache.shape();
  stop[2] = length;
  return mx::slice(cache, {0, 0, 0, 0}, stop, s);
}

// The first positions of a cache of heads as large as those of q.
mx::array
read(const mx::array& cache, int length, const mx::array& q, mx::Stream s) {
  int depth = q.shape(2) / cache.shape(1);
  auto rows = filled(cache, length, s);
  int bits = ops::quantized_bits(cache, depth);
  return bits ? decode_heads(rows, bits, q.dtype(), s) : rows;
}

} // namespace

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s) {
  return mx::zeros(shape, dtype, s);
}

mx::array fork_cache(
    const mx::array& prefix,
    int length,
    int batch,
    int capacity,
    mx::Stream s) {
  mx::Shape shape{batch, prefix.shape(1), capacity, prefix.shape(3)};
  mx::Shape stop = shape;
  stop[2] = length;
  auto first = mx::broadcast_to(filled(prefix, length, s), stop, s);
  auto empty = make_cache(shape, prefix.dtype(), s);
  return mx::slice_update(empty, first, {0, 0, 0, 0}, stop, s);
}

mx::array write_heads(
    const mx::array& cache,
    const mx::array& x,
    int past,
    mx::Stream s) {
  mx::Shape stop = cache.shape();
  stop[2] = past + x.shape(1);
  auto heads = split_heads(x, cache.shape(1), s);
  int bits = ops::quantized_bits(cache, heads.shape(3));
  auto rows =
      bits ? encode_heads(heads, bits, s) : mx::astype(heads, cache.dtype(), s);
  return mx::slice_update(cache, rows, {0, 0, past, 0}, stop, s);
}

mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s) {
  int length = past + q.shape(1);
  auto out = mx::fast::scaled_dot_product_attention(
      split_heads(q, keys.shape(1), s),
      read(keys, length, q, s),
      read(values, length, q, s),
      scale_of(q.shape(2) / keys.shape(1)),
      q.shape(1) == 1 ? "" : "causal",
      std::nullopt,
      std::nullopt,
      false,
      s);
  return merge_heads(out, s);
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
  int depth = q.shape(2) / keys.shape(1), length = past + q.shape(1);
  auto queries = mx::slice(
      q,
      {0, q.shape(1) - rows, head * depth},
      {1, q.shape(1), (head + 1) * depth},
      s);
  auto visible = mx::slice(
      read(keys, length, q, s),
      {0, head, 0, 0},
      {1, head + 1, length, depth},
      s);
  auto scores = mx::matmul(
      mx::astype(mx::reshape(queries, {rows, depth}, s), mx::float32, s),
      mx::transpose(
          mx::astype(mx::reshape(visible, {length, depth}, s), mx::float32, s),
          s),
      s);
  auto positions = mx::arange(0, length, 1, mx::int32, s);
  auto own = mx::reshape(
      mx::arange(length - rows, length, 1, mx::int32, s), {rows, 1}, s);
  scores = mx::where(
      mx::less_equal(positions, own, s),
      mx::multiply(scores, mx::array(scale_of(depth)), s),
      mx::array(-std::numeric_limits<float>::infinity()),
      s);
  auto weights = mx::softmax(scores, -1, true, s);
  int missing = begin + count - length;
  if (missing > 0) {
    weights = mx::concatenate(
        {weights, mx::zeros({rows, missing}, mx::float32, s)}, 1, s);
  }
  return mx::slice(weights, {0, begin}, {rows, begin + count}, s);
}

ops::SelfAttention self_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const mx::array& keys,
    const mx::array& values,
    int past,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  auto parts = mx::split(qkv, 3, -1, s);
  auto q = rotary(parts[0], frequencies, past, s);
  auto k = rotary(parts[1], frequencies, past, s);
  auto all_keys = write_heads(keys, k, past, s);
  auto all_values = write_heads(values, parts[2], past, s);
  std::vector<mx::array> weights;
  for (int head : watch.heads) {
    weights.push_back(attention_weights(
        q, all_keys, past, head, watch.rows, watch.begin, watch.count, s));
  }
  auto out = cached_attention(q, all_keys, all_values, past, s);
  return {out, all_keys, all_values, std::move(weights)};
}

mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s) {
  auto out = mx::fast::scaled_dot_product_attention(
      split_heads(q, heads, s),
      split_heads(k, heads, s),
      split_heads(v, heads, s),
      scale_of(q.shape(2) / heads),
      "",
      std::nullopt,
      std::nullopt,
      false,
      s);
  return merge_heads(out, s);
}

mx::array relative_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const mx::array& positions,
    const mx::array& content_bias,
    const mx::array& position_bias,
    int heads,
    mx::Stream s) {
  int batch = q.shape(0), length = q.shape(1);
  auto by_position = split_heads(mx::add(q, position_bias, s), heads, s);
  auto distances = split_heads(mx::expand_dims(positions, 0, s), heads, s);
  auto scores = mx::matmul(by_position, mx::swapaxes(distances, 2, 3, s), s);
  // Row i of the [T, 2T - 1] scores starts at T - 1 - i: one less each row, as
  // the rows of the flat array are read when they are one element shorter.
  scores = mx::reshape(scores, {batch, heads, -1}, s);
  int64_t whole = int64_t(length) * (2 * length - 1);
  scores = mx::as_strided(
      mx::contiguous(scores, false, s),
      {batch, heads, length, length},
      {heads * whole, whole, 2 * length - 2, 1},
      length - 1,
      s);
  scores = mx::multiply(
      scores, mx::array(scale_of(q.shape(2) / heads), scores.dtype()), s);
  auto out = mx::fast::scaled_dot_product_attention(
      split_heads(mx::add(q, content_bias, s), heads, s),
      split_heads(k, heads, s),
      split_heads(v, heads, s),
      scale_of(q.shape(2) / heads),
      "array",
      scores,
      std::nullopt,
      false,
      s);
  return merge_heads(out, s);
}

} // namespace nightingale::reference
