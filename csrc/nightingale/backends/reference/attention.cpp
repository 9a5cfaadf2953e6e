#include <limits>

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::reference {

using namespace backends;

namespace {

// The first positions of a cache of heads as large as those of q.
mx::array
read(const mx::array& cache, int length, const mx::array& q, mx::Stream s) {
  int depth = q.shape(2) / cache.shape(1);
  auto rows = first_positions(cache, length, s);
  int bits = ops::quantized_bits(cache, depth);
  return bits ? decode_heads(rows, bits, q.dtype(), s) : rows;
}

} // namespace

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s) {
  return mx::zeros(shape, dtype, s);
}

mx::array
fork_cache(const mx::array& prefix, const ops::CacheFork& fork, mx::Stream s) {
  auto [length, batch, capacity] = fork;
  mx::Shape shape{batch, prefix.shape(1), capacity, prefix.shape(3)};
  mx::Shape stop = shape;
  stop[2] = length;
  auto first = mx::broadcast_to(first_positions(prefix, length, s), stop, s);
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
    const ops::CachedQueries& queries,
    const ops::LayerCache& cache,
    mx::Stream s) {
  const auto &q = queries.q, &keys = cache.keys;
  int length = queries.past + q.shape(1);
  auto out = mx::fast::scaled_dot_product_attention(
      split_heads(q, keys.shape(1), s),
      read(keys, length, q, s),
      read(cache.values, length, q, s),
      attention_scale(q.shape(2) / keys.shape(1)),
      q.shape(1) == 1 ? "" : "causal",
      std::nullopt,
      std::nullopt,
      false,
      s);
  return merge_heads(out, s);
}

namespace {

mx::array weights_of_head(
    const ops::CachedQueries& from,
    const mx::array& keys,
    int head,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  const auto& q = from.q;
  int rows = watch.rows, begin = watch.begin, count = watch.count;
  int depth = q.shape(2) / keys.shape(1), length = from.past + q.shape(1);
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
      mx::multiply(scores, mx::array(attention_scale(depth)), s),
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

} // namespace

std::vector<mx::array> attention_weights(
    const ops::CachedQueries& queries,
    const mx::array& keys,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  std::vector<mx::array> weights;
  for (int head : watch.heads) {
    weights.push_back(weights_of_head(queries, keys, head, watch, s));
  }
  return weights;
}

ops::SelfAttention self_attention(const ops::AttentionInput& in, mx::Stream s) {
  const auto& cache = in.cache;
  if (cache.written) {
    mx::eval(*cache.written); // MLX's ops do not see writes in place
  }
  auto parts = mx::split(in.qkv, 3, -1, s);
  auto rotated = [&](const mx::array& x) {
    return in.frequencies ? rotary(x, *in.frequencies, in.past, s) : x;
  };
  auto q = rotated(parts[0]), k = rotated(parts[1]);
  ops::LayerCache longer{
      write_heads(cache.keys, k, in.past, s),
      write_heads(cache.values, parts[2], in.past, s)};
  ops::CachedQueries queries{q, in.past};
  auto weights =
      reference::attention_weights(queries, longer.keys, in.watch, s);
  auto out = reference::cached_attention(queries, longer, s);
  return {out, std::move(longer), std::move(weights)};
}

} // namespace nightingale::reference
