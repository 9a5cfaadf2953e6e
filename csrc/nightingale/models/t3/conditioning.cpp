#include "nightingale/models/t3/conditioning.h"

#include "mlx/ops.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

namespace {

constexpr int kPerceiverHeads = 4;
constexpr float kNormEps = 1e-5f;

} // namespace

Conditioning::Conditioning(const LayerReader& reader, const T3Config& config)
    : speaker_(
          reader.linear({"spkr_enc"}, {config.hidden, config.speaker_size})),
      emotion_w_(reader.matrix({"emotion_adv_fc"}, {config.hidden, 1})),
      queries_(reader.tensor(
          "perceiver.pre_attention_query",
          {1, config.perceiver_queries, config.hidden})),
      norm_(reader.norm("perceiver.attn.norm", config.hidden, kNormEps)),
      query_(reader.linear(
          {"perceiver.attn.to_q"},
          {config.hidden, config.hidden})),
      key_value_(reader.linear(
          {"perceiver.attn.to_k", "perceiver.attn.to_v"},
          {config.hidden, config.hidden})),
      out_(reader.linear(
          {"perceiver.attn.proj_out"},
          {config.hidden, config.hidden})) {}

mx::array Conditioning::attend(
    const mx::array& x,
    const mx::array& y,
    mx::Stream s) const {
  auto from = ops::layer_norm(x, norm_, x.dtype(), s);
  auto to = ops::layer_norm(y, norm_, y.dtype(), s);
  auto q = query_(from, {}, s);
  auto kv = mx::split(key_value_(to, {}, s), 2, -1, s);
  auto out = ops::full_attention({q, kv[0], kv[1], kPerceiverHeads}, s);
  return out_(out, {.residual = x}, s);
}

mx::array Conditioning::encode(
    const T3Voice& voice,
    const std::optional<mx::array>& prompt,
    mx::Stream s) const {
  auto dtype = queries_.dtype();
  int size = voice.speaker.size();
  mx::array speaker(voice.speaker.data(), {1, 1, size}, dtype);
  auto emotion = mx::full({1, 1, 1}, voice.emotion, dtype, s);
  std::vector<mx::array> parts{speaker_(speaker, {}, s)};
  if (prompt) {
    auto summary = attend(queries_, *prompt, s);
    parts.push_back(attend(summary, summary, s));
  }
  parts.push_back(ops::linear(emotion, emotion_w_, {}, s));
  return mx::concatenate(parts, 1, s);
}

} // namespace nightingale
