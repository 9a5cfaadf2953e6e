#include "nightingale/backends/common.h"

#include <cmath>

#include "mlx/ops.h"
#include "nightingale/error.h"

namespace nightingale::backends {

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

void check_one_solution(const ops::FrameLayout& layout) {
  if (layout.solutions() > 1) {
    throw Error(
        "frames of " + std::to_string(layout.solutions()) +
        " solutions in one array; these layers expect those of one");
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

ops::Normed linear_add_norm(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::AddNorm& add,
    mx::Stream s) {
  auto sum = ops::linear(x, w, {.bias = add.bias, .residual = add.residual}, s);
  return {sum, ops::layer_norm(sum, add.norm, add.dtype, s)};
}

namespace {

struct Inner {
  mx::array sum, hidden;
};

Inner run_inner(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  auto [sum, normed] = ops::linear_add_norm(
      in.x, block.out, {block.out_b, in.residual, block.norm, in.dtype}, s);
  auto hidden = ops::linear(
      normed,
      block.up,
      {.bias = block.up_b, .activation = ops::Activation::gelu},
      s);
  return {sum, hidden};
}

} // namespace

mx::array feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  auto [sum, hidden] = run_inner(in, block, s);
  return ops::linear(
      hidden, block.down, {.bias = block.down_b, .residual = sum}, s);
}

ops::Normed feed_forward_norm(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) {
  auto [sum, hidden] = run_inner(in, block, s);
  return ops::linear_add_norm(
      hidden, block.down, {block.down_b, sum, next, in.dtype}, s);
}

mx::array embed_token(const ops::TokenEmbedding& token, mx::Stream s) {
  auto what = ops::embedding(token.table, token.token, s);
  auto where = ops::embedding(token.positions, mx::array({token.position}), s);
  auto sum = mx::astype(mx::add(what, where, s), mx::float32, s);
  return mx::broadcast_to(sum, {token.rows, 1, token.table.shape(1)}, s);
}

ops::SelfAttention projected_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s) {
  auto attention = ops::self_attention(in, s);
  attention.out = ops::linear(
      attention.out,
      projection.w,
      {.bias = projection.b, .residual = residual},
      s);
  return attention;
}

mx::array frame_attention(
    const mx::array& qkv,
    const ops::FrameLayout& layout,
    int heads,
    mx::Stream s) {
  check_one_solution(layout);
  return ops::full_attention(split_qkv(qkv, layout.batch, heads, s), s);
}

// One product for each layer, or one for all where they are quantized.
std::vector<mx::array> project_positions(
    const mx::array& x,
    const ops::PositionWeights& weights,
    mx::Stream s) {
  const auto& [w, layers, heads] = weights;
  if (w.is_quantized()) {
    return mx::split(ops::linear(x, w, {}, s), layers, -1, s);
  }
  std::vector<mx::array> all;
  for (const auto& layer : mx::split(w.w, layers, 0, s)) {
    all.push_back(ops::linear(x, layer, {}, s));
  }
  return all;
}

mx::array relative_frame_attention(
    const mx::array& qkv,
    const ops::RelativePositions& relative,
    int heads,
    mx::Stream s) {
  return ops::relative_attention(split_qkv(qkv, 1, heads, s), relative, s);
}

ops::DecoderOutput decoder_layers(const ops::DecoderInput& in, mx::Stream s) {
  ops::DecoderOutput out{in.x, {}};
  for (const auto& [layer, cache, watch] : in.runs) {
    auto qkv = ops::norm_linear(
        out.x, layer->attention_norm, layer->qkv.w, {.bias = layer->qkv.b}, s);
    auto attention = ops::projected_attention(
        {qkv, in.frequencies, *cache, in.past, watch}, layer->out, out.x, s);
    *cache = attention.cache;
    out.weights.insert(
        out.weights.end(), attention.weights.begin(), attention.weights.end());
    out.x = ops::decoder_feed_forward(attention.out, *layer, s);
  }
  return out;
}

ops::DecoderSteps decoder_steps(
    const std::vector<ops::DecoderInput>& sequences,
    mx::Stream s) {
  std::vector<mx::array> inputs;
  for (const auto& each : sequences) {
    inputs.push_back(each.x);
  }
  ops::DecoderSteps out{mx::concatenate(inputs, 0, s), {}};
  out.weights.resize(sequences.size());
  for (size_t i = 0; i < sequences[0].runs.size(); ++i) {
    const auto& layer = *sequences[0].runs[i].layer;
    auto qkv = ops::norm_linear(
        out.x, layer.attention_norm, layer.qkv.w, {.bias = layer.qkv.b}, s);
    std::vector<mx::array> attended;
    int begin = 0;
    for (size_t u = 0; u < sequences.size(); ++u) {
      const auto& [x, runs, frequencies, past] = sequences[u];
      int end = begin + x.shape(0);
      auto rows = mx::slice(qkv, {begin, 0, 0}, {end, 1, qkv.shape(2)}, s);
      auto attention = ops::self_attention(
          {rows, frequencies, *runs[i].cache, past, runs[i].watch}, s);
      *runs[i].cache = attention.cache;
      attended.push_back(attention.out);
      out.weights[u].insert(
          out.weights[u].end(),
          attention.weights.begin(),
          attention.weights.end());
      begin = end;
    }
    out.x = ops::linear(
        mx::concatenate(attended, 0, s),
        layer.out.w,
        {.bias = layer.out.b, .residual = out.x},
        s);
    out.x = ops::decoder_feed_forward(out.x, layer, s);
  }
  return out;
}

mx::array decoder_feed_forward(
    const mx::array& x,
    const ops::DecoderLayer& layer,
    mx::Stream s) {
  const auto& up = layer.up;
  auto hidden = layer.activation
      ? ops::norm_linear(
            x,
            layer.ffn_norm,
            up.w,
            {.bias = up.b, .activation = *layer.activation},
            s)
      : ops::norm_swiglu(x, layer.ffn_norm, up.w, s);
  return ops::linear(
      hidden, layer.down.w, {.bias = layer.down.b, .residual = x}, s);
}

namespace {

mx::array report_of(const mx::array& marks, mx::Stream s) {
  auto at = [&](int place) {
    return mx::slice(marks, {place}, {place + 1}, s);
  };
  return mx::concatenate({at(ops::kTextPosition), at(ops::kStopForced)}, 0, s);
}

} // namespace

ops::Sampler choose_token(
    const mx::array& rows,
    const std::vector<mx::array>& weights,
    ops::Sampler sampler,
    mx::Stream s) {
  const auto& rules = sampler.rules;
  auto logits = ops::guide(rows, rules.options.cfg_weight, s);
  if (rules.analyser) {
    auto step = ops::alignment_step(
        {weights, logits, sampler.token, rules.stop_token, rules.limits},
        sampler.alignment,
        s);
    logits = step.logits;
    sampler.alignment = step.state;
    sampler.report = report_of(step.state.marks, s);
  }
  if (sampler.position < rules.limits.first_stop) {
    logits = ops::forbid_token(logits, rules.stop_token, s);
  }
  auto key = draw_key(
      {rules.options.seed,
       DrawStage::speech_token,
       rules.sentence,
       static_cast<uint32_t>(sampler.position)});
  auto kept =
      ops::filter_logits(logits, sampler.seen, rules.options, rules.order, s);
  sampler.token = ops::draw_token(kept, key, s);
  bool forgets_start =
      rules.order == ops::SamplingOrder::penalty_last && sampler.position == 0;
  auto seen = forgets_start ? mx::zeros(sampler.seen.shape(), mx::uint8, s)
                            : sampler.seen;
  sampler.seen = ops::mark_seen(seen, sampler.token, s);
  ++sampler.position;
  return sampler;
}

} // namespace nightingale::backends
