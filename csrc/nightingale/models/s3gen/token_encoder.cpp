#include "nightingale/models/s3gen/token_encoder.h"

#include <cmath>

#include "mlx/ops.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/frame_attention.h"

namespace nightingale {

namespace {

constexpr float kNormEps = 1e-5f;
constexpr float kLayerNormEps = 1e-12f;
constexpr int kBehindTaps = 3;
constexpr int kUpsampleTaps = 2 * kFramesPerToken + 1;

mx::Dtype product_dtype(const LayerFormat& format) {
  return ops::vector_dtype(format.matrices, format.stream);
}

mx::array
take_head_bias(const LayerReader& layer, const std::string& name, int width) {
  auto dtype = product_dtype(layer.format());
  auto bias = layer.tensor(name, {width / kHeadDim, kHeadDim}, dtype);
  return ops::computed(mx::reshape(bias, {width}, mx::Device::cpu));
}

std::vector<std::string> position_layers(const std::string& list, int count) {
  std::vector<std::string> layers;
  for (int i = 0; i < count; ++i) {
    layers.push_back(list + "." + std::to_string(i) + ".self_attn.linear_pos");
  }
  return layers;
}

} // namespace

TokenEncoder::Layer::Layer(const LayerReader& layer, const FlowConfig& config)
    : attention_norm(layer.norm("norm_mha", config.width, kLayerNormEps)),
      qkv(layer.linear(
          {"self_attn.linear_q", "self_attn.linear_k", "self_attn.linear_v"},
          {config.width, config.width})),
      content_bias(take_head_bias(layer, "self_attn.pos_bias_u", config.width)),
      position_bias(
          take_head_bias(layer, "self_attn.pos_bias_v", config.width)),
      out(layer.linear({"self_attn.linear_out"}, {config.width, config.width})),
      ffn_norm(layer.norm("norm_ff", config.width, kLayerNormEps)),
      up(layer.linear({"feed_forward.w_1"}, {config.ffn, config.width})),
      down(layer.linear({"feed_forward.w_2"}, {config.width, config.ffn})) {}

TokenEncoder::Stack::Stack(
    const LayerReader& flow,
    const std::string& list,
    int count,
    const FlowConfig& config)
    : position_w(flow.matrix(
          position_layers(list, count),
          {config.width, config.width})) {
  for (int i = 0; i < count; ++i) {
    layers.emplace_back(flow.child(list, i), config);
  }
}

TokenEncoder::Entry::Entry(const LayerReader& entry, int width)
    : linear(entry.linear({"0"}, {width, width})),
      norm(entry.norm("1", width, kNormEps)) {
  mx::array scale(std::sqrt(static_cast<float>(width)));
  for (mx::array* values : {&norm.w, &norm.b}) {
    *values = ops::computed(mx::multiply(*values, scale, mx::Device::cpu));
  }
}

TokenEncoder::TokenEncoder(const LayerReader& flow, const FlowConfig& config)
    : width_(config.width),
      stream_(flow.format().stream),
      product_(product_dtype(flow.format())),
      table_(flow.tensor(
          "input_embedding.weight",
          {config.sound_tokens, width_},
          flow.format().matrices)),
      entry_(flow.child("encoder.embed.out"), width_),
      upper_entry_(flow.child("encoder.up_embed.out"), width_),
      ahead_(flow.convolution(
          "encoder.pre_lookahead_layer.conv1",
          {width_, width_, kLookaheadTokens + 1},
          {.pad_right = kLookaheadTokens})),
      behind_(flow.convolution(
          "encoder.pre_lookahead_layer.conv2",
          {width_, width_, kBehindTaps},
          {.pad_left = kBehindTaps - 1})),
      stack_(flow, "encoder.encoders", config.layers, config),
      upper_stack_(flow, "encoder.up_encoders", config.upper_layers, config),
      upsample_(flow.convolution(
          "encoder.up_layer.conv",
          {width_, width_, kUpsampleTaps},
          {.pad_left = kUpsampleTaps - 1})),
      norm_(flow.norm("encoder.after_norm", width_, kNormEps)),
      mel_(flow.as(flow.format().matrices, 0)
               .linear({"encoder_proj"}, {kMels, width_})) {}

mx::array TokenEncoder::encode(const std::vector<int>& tokens) const {
  const auto& s = stream_;
  int length = tokens.size();
  mx::array ids(tokens.data(), {length});
  // The distances between tokens are the middle of those between frames.
  auto distance = distances(kFramesPerToken * length);
  auto near = mx::slice(
      distance,
      {(kFramesPerToken - 1) * length, 0},
      {(kFramesPerToken + 1) * length - 1, width_},
      s);
  auto x = mx::expand_dims(ops::embedding(table_, ids, s), 0, s);
  x = run(stack_, look_ahead(enter(entry_, x)), near, std::nullopt);
  x = run(upper_stack_, enter(upper_entry_, upsample(x)), distance, norm_);
  x = mel_(x, {.dtype = mx::float32}, s);
  return mx::reshape(x, {1, -1, kMels}, s);
}

mx::array TokenEncoder::enter(const Entry& entry, const mx::array& x) const {
  const auto& s = stream_;
  auto y = entry.linear(ops::cast(x, product_, s), {}, s);
  return ops::layer_norm(y, entry.norm, mx::float32, s);
}

mx::array TokenEncoder::look_ahead(const mx::array& x) const {
  const auto& s = stream_;
  auto y = ahead_(
      ops::cast(x, product_, s),
      {.activation = ops::Activation::leaky_relu},
      s);
  return behind_(y, {.residual = x}, s);
}

mx::array TokenEncoder::upsample(const mx::array& x) const {
  const auto& s = stream_;
  auto frames = mx::reshape(ops::cast(x, product_, s), {1, -1, width_}, s);
  return upsample_(mx::repeat(frames, kFramesPerToken, 1, s), {}, s);
}

mx::array TokenEncoder::distances(int length) const {
  const auto& s = stream_;
  auto distance = mx::reshape(
      mx::arange(length - 1, -length, -1, mx::float32, s), {-1, 1}, s);
  float step = -std::log(10000.0f) / static_cast<float>(width_);
  auto frequency = mx::exp(
      mx::multiply(
          mx::arange(0, width_, 2, mx::float32, s), mx::array(step), s),
      s);
  auto angle = mx::multiply(distance, frequency, s);
  auto pairs = mx::stack({mx::sin(angle, s), mx::cos(angle, s)}, -1, s);
  auto table = mx::reshape(pairs, {2 * length - 1, width_}, s);
  return mx::astype(table, product_, s);
}

mx::array TokenEncoder::run(
    const Stack& stack,
    const mx::array& input,
    const mx::array& distance,
    const std::optional<ops::LayerNorm>& norm) const {
  const auto& s = stream_;
  const auto& layers = stack.layers;
  int count = layers.size(), heads = width_ / kHeadDim;
  auto positions =
      ops::project_positions(distance, {stack.position_w, count, heads}, s);
  ops::Normed x{
      input, ops::layer_norm(input, layers[0].attention_norm, product_, s)};
  for (int i = 0;; ++i) {
    const auto& layer = layers[i];
    auto attended = ops::relative_frame_attention(
        layer.qkv(x.normed, {}, s),
        {positions[i], layer.content_bias, layer.position_bias},
        heads,
        s);
    x = ops::linear_add_norm(
        attended,
        layer.out.w,
        {layer.out.b, x.sum, layer.ffn_norm, product_},
        s);
    auto hidden = layer.up(x.normed, {.activation = ops::Activation::silu}, s);
    bool last = i + 1 == count;
    if (last && !norm) {
      return layer.down(hidden, {.residual = x.sum}, s);
    }
    const auto& next = last ? *norm : layers[i + 1].attention_norm;
    x = ops::linear_add_norm(
        hidden, layer.down.w, {layer.down.b, x.sum, next, product_}, s);
    if (last) {
      return x.normed;
    }
  }
}

} // namespace nightingale
