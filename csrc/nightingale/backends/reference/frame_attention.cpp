#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

using namespace backends;

mx::array full_attention(const ops::AttentionHeads& in, mx::Stream s) {
  const auto& [q, k, v, heads] = in;
  auto out = mx::fast::scaled_dot_product_attention(
      split_heads(q, heads, s),
      split_heads(k, heads, s),
      split_heads(v, heads, s),
      attention_scale(q.shape(2) / heads),
      "",
      std::nullopt,
      std::nullopt,
      false,
      s);
  return merge_heads(out, s);
}

mx::array relative_attention(
    const ops::AttentionHeads& in,
    const ops::RelativePositions& relative,
    mx::Stream s) {
  const auto& [q, k, v, heads] = in;
  const auto& [positions, content_bias, position_bias] = relative;
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
      scores,
      mx::array(attention_scale(q.shape(2) / heads), scores.dtype()),
      s);
  auto out = mx::fast::scaled_dot_product_attention(
      split_heads(mx::add(q, content_bias, s), heads, s),
      split_heads(k, heads, s),
      split_heads(v, heads, s),
      attention_scale(q.shape(2) / heads),
      "array",
      scores,
      std::nullopt,
      false,
      s);
  return merge_heads(out, s);
}

} // namespace nightingale::reference
