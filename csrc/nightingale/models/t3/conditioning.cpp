#include "nightingale/models/t3/conditioning.h"

#include "mlx/ops.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/norm.h"

namespace nightingale {

namespace {

constexpr int kPerceiverHeads = 4;
constexpr float kNormEps = 1e-5f;

const std::string kAttention = "cond_enc.perceiver.attn.";

} // namespace

Conditioning::Conditioning(
    Weights& weights,
    const T3Config& config,
    mx::Dtype vectors)
    : speaker_w_(weights.take(
          "cond_enc.spkr_enc.weight",
          {config.hidden, config.speaker_size})),
      speaker_b_(
          weights.take("cond_enc.spkr_enc.bias", {config.hidden}, vectors)),
      emotion_w_(
          weights.take("cond_enc.emotion_adv_fc.weight", {config.hidden, 1})),
      queries_(weights.take(
          "cond_enc.perceiver.pre_attention_query",
          {1, config.perceiver_queries, config.hidden},
          vectors)),
      norm_w_(
          weights.take(kAttention + "norm.weight", {config.hidden}, vectors)),
      norm_b_(weights.take(kAttention + "norm.bias", {config.hidden}, vectors)),
      query_w_(weights.take(
          kAttention + "to_q.weight",
          {config.hidden, config.hidden})),
      query_b_(
          weights.take(kAttention + "to_q.bias", {config.hidden}, vectors)),
      key_value_w_(weights.take_rows(
          {kAttention + "to_k.weight", kAttention + "to_v.weight"},
          {config.hidden, config.hidden})),
      key_value_b_(weights.take_rows(
          {kAttention + "to_k.bias", kAttention + "to_v.bias"},
          {config.hidden},
          vectors)),
      out_w_(weights.take(
          kAttention + "proj_out.weight",
          {config.hidden, config.hidden})),
      out_b_(weights.take(
          kAttention + "proj_out.bias",
          {config.hidden},
          vectors)) {}

mx::array Conditioning::attend(
    const mx::array& x,
    const mx::array& y,
    mx::Stream s) const {
  ops::LayerNorm norm{norm_w_, norm_b_, kNormEps};
  auto from = ops::layer_norm(x, norm, x.dtype(), s);
  auto to = ops::layer_norm(y, norm, y.dtype(), s);
  auto q = ops::linear(from, query_w_, {.bias = query_b_}, s);
  auto kv = mx::split(
      ops::linear(to, key_value_w_, {.bias = key_value_b_}, s), 2, -1, s);
  auto out = ops::full_attention({q, kv[0], kv[1], kPerceiverHeads}, s);
  return ops::linear(out, out_w_, {.bias = out_b_, .residual = x}, s);
}

mx::array Conditioning::encode(
    const T3Voice& voice,
    const std::optional<mx::array>& prompt,
    mx::Stream s) const {
  auto dtype = queries_.dtype();
  int size = voice.speaker.size();
  mx::array speaker(voice.speaker.data(), {1, 1, size}, dtype);
  auto emotion = mx::full({1, 1, 1}, voice.emotion, dtype, s);
  std::vector<mx::array> parts{
      ops::linear(speaker, speaker_w_, {.bias = speaker_b_}, s)};
  if (prompt) {
    auto summary = attend(queries_, *prompt, s);
    parts.push_back(attend(summary, summary, s));
  }
  parts.push_back(ops::linear(emotion, emotion_w_, {}, s));
  return mx::concatenate(parts, 1, s);
}

} // namespace nightingale
