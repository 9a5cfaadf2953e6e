#include "nightingale/backends/gpu/attention.h"

#include <cmath>
#include <sstream>

#include "mlx/backend/metal/metal.h"
#include "mlx/fast.h"
#include "mlx/ops.h"
#include "mlx/utils.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/tile_shape.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

const std::vector<int> kHeadThreads{128, 64, 32};
constexpr int kGroupQueries = 128; // of tile_attention

// [parts, batch, heads, T, head_dim] of `dtype`, queries scaled: q, k, v, or
// with biases q with each of them, k, v.
std::vector<mx::array> split_heads(
    const mx::array& qkv,
    int batch,
    int heads,
    const std::optional<mx::array>& bias,
    const std::optional<mx::array>& other,
    mx::Dtype dtype,
    mx::Stream s) {
  int depth = qkv.shape(-1) / 3 / heads, length = row_count(qkv) / batch;
  int parts = bias ? 4 : 3;
  auto all = launch_one(
      {.kernel = "split_heads",
       .inputs = {qkv, bias.value_or(qkv), other.value_or(qkv)},
       .outputs = {{{parts, batch, heads, length, depth}, dtype}},
       .constants =
           {{"Y", dtype}, {"HEADS", heads}, {"D", depth}, {"PARTS", parts}},
       .groups = {length, batch, parts},
       .threads = kHeadThreads},
      s);
  return mx::split(all, parts, 0, s);
}

// [.., batch, heads, T, head_dim] → [batch * T, heads * head_dim] of `dtype`
mx::array merge_heads(const mx::array& x, mx::Dtype dtype, mx::Stream s) {
  int batch = x.shape(-4), heads = x.shape(-3), depth = x.shape(-1);
  int length = x.shape(-2);
  return launch_one(
      {.kernel = "merge_heads",
       .inputs = {x},
       .outputs = {{{batch * length, heads * depth}, dtype}},
       .constants = {{"Y", dtype}, {"HEADS", heads}, {"D", depth}},
       .groups = {length, batch, 1},
       .threads = kHeadThreads},
      s);
}

mx::array columns(const mx::array& x, mx::Stream s) {
  return mx::swapaxes(x, -1, -2, s);
}

} // namespace

mx::array frame_attention(
    const mx::array& qkv,
    const ops::FrameLayout& layout,
    int heads,
    mx::Stream s) {
  if (has_tiles(s) && fits_tile_attention(qkv, heads)) {
    return tile_attention(qkv, layout, heads, s);
  }
  check_one_solution(layout);
  bool fused = qkv.dtype() != mx::float32 || mx::metal::is_available() ||
      !has_kernels(s);
  return fused ? fused_attention(qkv, layout, heads, s)
               : attention_by_products(qkv, layout, heads, s);
}

mx::array fused_attention(
    const mx::array& qkv,
    const ops::FrameLayout& layout,
    int heads,
    mx::Stream s) {
  int depth = qkv.shape(-1) / 3 / heads;
  auto rows = mx::reshape(qkv, {layout.batch, -1, 3 * heads, depth}, s);
  auto all = mx::transpose(rows, {0, 2, 1, 3}, s);
  auto parts = mx::split(all, 3, 1, s); // views: the attention takes strides
  auto out = mx::fast::scaled_dot_product_attention(
      parts[0],
      parts[1],
      parts[2],
      1.0f / std::sqrt(static_cast<float>(depth)),
      "",
      std::nullopt,
      std::nullopt,
      false,
      s);
  return mx::reshape(
      mx::transpose(out, {0, 2, 1, 3}, s), {-1, heads * depth}, s);
}

mx::array attention_by_products(
    const mx::array& qkv,
    const ops::FrameLayout& layout,
    int heads,
    mx::Stream s) {
  auto dtype = qkv.dtype();
  auto parts = split_heads(
      qkv, layout.batch, heads, std::nullopt, std::nullopt, dtype, s);
  auto scores = mx::matmul(parts[0], columns(parts[1], s), s);
  auto weights = mx::softmax(scores, -1, true, s);
  return merge_heads(mx::matmul(weights, parts[2], s), dtype, s);
}

bool fits_tile_attention(int head_dim, mx::Dtype dtype) {
  return is_half(dtype) && (head_dim == 32 || head_dim == 64);
}

bool fits_tile_attention(const mx::array& qkv, int heads) {
  int depth = qkv.shape(-1) / 3 / heads;
  return fits_tile_attention(depth, qkv.dtype()) &&
      qkv.size() <= kTileMostNumbers;
}

mx::array frame_extent(int rows, const std::vector<int>& lengths) {
  std::vector<int> extent{rows};
  extent.insert(extent.end(), lengths.begin(), lengths.end());
  return numbers(extent);
}

mx::array tile_attention(
    const mx::array& qkv,
    const ops::FrameLayout& layout,
    int heads,
    mx::Stream s) {
  int width = qkv.shape(-1) / 3, rows = row_count(qkv);
  int length = rows / layout.batch;
  if (!fits_tile_attention(qkv, heads)) {
    std::ostringstream message;
    message << "tile_attention is for float16 and bfloat16 and heads of 32 or "
               "64, not for "
            << qkv.dtype() << " and " << width / heads;
    throw Error(message.str());
  }
  return launch_one(
      {.kernel = "tile_attention",
       .inputs =
           {qkv,
            layout.lengths.empty() ? numbers({length, length})
                                   : frame_extent(length, layout.lengths)},
       .outputs = {{{rows, width}, qkv.dtype()}},
       .constants =
           {{"T", qkv.dtype()},
            {"HEADS", heads},
            {"D", width / heads},
            {"SEQUENCES", layout.sequences()}},
       .groups = {group_count(length, kGroupQueries), heads, layout.batch},
       .threads = {128, 64, 32}},
      s);
}

mx::array relative_frame_attention(
    const mx::array& qkv,
    const ops::RelativePositions& relative,
    int heads,
    mx::Stream s) {
  if (!has_kernels(s)) {
    return backends::relative_frame_attention(qkv, relative, heads, s);
  }
  const auto& [positions, content_bias, position_bias] = relative;
  int length = row_count(qkv);
  auto parts =
      split_heads(qkv, 1, heads, content_bias, position_bias, mx::float32, s);
  auto weights = launch_one(
      {.kernel = "relative_softmax",
       .inputs =
           {mx::matmul(parts[0], columns(parts[2], s), s),
            mx::matmul(parts[1], columns(positions, s), s)},
       .outputs = {{{1, 1, heads, length, length}, mx::float32}},
       .groups = {length, heads, 1},
       .threads = {32}},
      s);
  return merge_heads(mx::matmul(weights, parts[3], s), qkv.dtype(), s);
}

std::vector<mx::array> project_positions(
    const mx::array& x,
    const ops::PositionWeights& weights,
    mx::Stream s) {
  int layers = weights.layers, count = layers * weights.heads;
  if (weights.w.is_quantized() || !has_kernels(s)) {
    return backends::project_positions(x, weights, s);
  }
  // [1, 1, heads, rows, head_dim] for each layer, float32: one product.
  const auto& w = weights.w.w;
  int depth = w.shape(0) / count;
  auto by_head = mx::reshape(w, {count, depth, w.shape(1)}, s);
  auto all = mx::matmul(mx::expand_dims(x, 0, s), columns(by_head, s), s);
  all = mx::reshape(
      mx::astype(all, mx::float32, s), {1, 1, count, x.shape(0), depth}, s);
  return mx::split(all, layers, 2, s);
}

} // namespace nightingale::gpu
