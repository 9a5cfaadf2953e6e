#include "nightingale/backends/common.h"

#include <cmath>

#include "mlx/ops.h"
#include "nightingale/error.h"

namespace nightingale::backends {

namespace {

struct Inner {
  mx::array sum, hidden;
};

Inner run_inner(
    const LayerOps& run,
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  auto [sum, normed] = run.linear_add_norm(
      in.x, block.out, {block.out_b, in.residual, block.norm, in.dtype}, s);
  auto hidden = run.linear(
      normed,
      block.up,
      {.bias = block.up_b, .activation = ops::Activation::gelu},
      s);
  return {sum, hidden};
}

} // namespace

void check_linear(const mx::array& x, const ops::Matrix& w, bool on_cpu) {
  if (x.shape(-1) != w.columns()) {
    throw Error(
        "rows of " + std::to_string(x.shape(-1)) +
        " numbers do not fit a matrix of " + std::to_string(w.columns()) +
        " columns");
  }
  if (w.is_quantized() && w.is_packed() != on_cpu) {
    throw Error(
        std::string("weights quantized for ") +
        (w.is_packed() ? "the CPU" : "a GPU") + " run there only");
  }
}

ops::AttentionHeads
split_qkv(const mx::array& qkv, int batch, int heads, mx::Stream s) {
  auto frames =
      qkv.ndim() == 3 ? qkv : mx::reshape(qkv, {batch, -1, qkv.shape(1)}, s);
  auto parts = mx::split(frames, 3, -1, s);
  return {parts[0], parts[1], parts[2], heads};
}

float attention_scale(int head_dim) {
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

mx::array split_heads(const mx::array& x, int heads, mx::Stream s) {
  auto split = mx::reshape(x, {x.shape(0), x.shape(1), heads, -1}, s);
  return mx::transpose(split, {0, 2, 1, 3}, s);
}

mx::array merge_heads(const mx::array& x, mx::Stream s) {
  auto rows = mx::transpose(x, {0, 2, 1, 3}, s);
  return mx::reshape(rows, {x.shape(0), x.shape(2), -1}, s);
}

mx::array first_positions(const mx::array& cache, int length, mx::Stream s) {
  mx::Shape stop = cache.shape();
  stop[2] = length;
  return mx::slice(cache, {0, 0, 0, 0}, stop, s);
}

mx::array LayerOps::feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) const {
  auto [sum, hidden] = run_inner(*this, in, block, s);
  return linear(hidden, block.down, {.bias = block.down_b, .residual = sum}, s);
}

ops::Normed LayerOps::feed_forward_norm(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) const {
  auto [sum, hidden] = run_inner(*this, in, block, s);
  return linear_add_norm(
      hidden, block.down, {block.down_b, sum, next, in.dtype}, s);
}

ops::SelfAttention LayerOps::attend_and_project(
    const ops::AttentionInput& in,
    const ops::Matrix& projection,
    const mx::array& residual,
    mx::Stream s) const {
  auto attention = self_attention(in, s);
  attention.out = linear(attention.out, projection, {.residual = residual}, s);
  return attention;
}

std::vector<mx::array> LayerOps::project_positions(
    const mx::array& x,
    const ops::PositionWeights& weights,
    mx::Stream s) const {
  const auto& [w, layers, heads] = weights;
  if (w.is_quantized()) {
    return mx::split(linear(x, w, {}, s), layers, -1, s);
  }
  std::vector<mx::array> all;
  for (const auto& layer : mx::split(w.w, layers, 0, s)) {
    all.push_back(linear(x, layer, {}, s));
  }
  return all;
}

mx::array LayerOps::decoder_feed_forward(
    const mx::array& x,
    const ops::DecoderLayer& layer,
    float eps,
    mx::Stream s) const {
  auto gated = norm_swiglu(x, {layer.ffn_norm, eps}, layer.gate_up, s);
  return linear(gated, layer.down, {.residual = x}, s);
}

ops::DecoderOutput LayerOps::decoder_layers(
    const ops::DecoderInput& in,
    mx::Stream s) const {
  ops::DecoderOutput out{in.x, {}};
  for (const auto& [layer, cache, watch] : in.runs) {
    auto qkv =
        norm_linear(out.x, {layer->attention_norm, in.eps}, layer->qkv, s);
    auto attention = projected_attention(
        {qkv, in.frequencies, *cache, in.past, watch}, layer->out, out.x, s);
    *cache = attention.cache;
    out.weights.insert(
        out.weights.end(), attention.weights.begin(), attention.weights.end());
    out.x = decoder_feed_forward(attention.out, *layer, in.eps, s);
  }
  return out;
}

} // namespace nightingale::backends
