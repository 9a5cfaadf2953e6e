#include "nightingale/models/s3gen/token_encoder.h"

#include <cmath>

#include "mlx/ops.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

namespace {

constexpr float kNormEps = 1e-5f;
constexpr float kLayerNormEps = 1e-12f;
constexpr int kBehindTaps = 3;
constexpr int kUpsampleTaps = 2 * kFramesPerToken + 1;

const std::string kEncoder = "flow.encoder.";

} // namespace

TokenEncoder::TokenEncoder(
    Weights& weights,
    const FlowConfig& config,
    int bits,
    mx::Stream s)
    : width_(config.width),
      bits_(bits),
      stream_(s),
      product_(ops::vector_dtype(weights.dtype(), s)),
      table_(weights.take(
          "flow.input_embedding.weight",
          {config.sound_tokens, config.width})),
      entry_(take_entry(weights, config, kEncoder + "embed.out.")),
      upper_entry_(take_entry(weights, config, kEncoder + "up_embed.out.")),
      ahead_w_(take_conv(
          weights,
          kEncoder + "pre_lookahead_layer.conv1",
          kLookaheadTokens + 1)),
      ahead_b_(weights.take(
          kEncoder + "pre_lookahead_layer.conv1.bias",
          {width_},
          mx::float32)),
      behind_w_(take_conv(
          weights,
          kEncoder + "pre_lookahead_layer.conv2",
          kBehindTaps)),
      behind_b_(weights.take(
          kEncoder + "pre_lookahead_layer.conv2.bias",
          {width_},
          mx::float32)),
      stack_(
          take_stack(weights, config, kEncoder + "encoders.", config.layers)),
      upper_stack_(take_stack(
          weights,
          config,
          kEncoder + "up_encoders.",
          config.upper_layers)),
      upsample_w_(
          take_conv(weights, kEncoder + "up_layer.conv", kUpsampleTaps)),
      upsample_b_(
          weights.take(kEncoder + "up_layer.conv.bias", {width_}, mx::float32)),
      norm_{
          weights.take(kEncoder + "after_norm.weight", {width_}, mx::float32),
          weights.take(kEncoder + "after_norm.bias", {width_}, mx::float32),
          kNormEps},
      mel_w_(weights.take("flow.encoder_proj.weight", {kMels, width_})),
      mel_b_(weights.take("flow.encoder_proj.bias", {kMels}, mx::float32)) {}

TokenEncoder::Stack TokenEncoder::take_stack(
    Weights& weights,
    const FlowConfig& config,
    const std::string& name,
    int layers) const {
  std::vector<Layer> all;
  std::vector<std::string> positions;
  for (int i = 0; i < layers; ++i) {
    std::string layer = name + std::to_string(i) + ".";
    all.push_back(take_layer(weights, config, layer));
    positions.push_back(layer + "self_attn.linear_pos.weight");
  }
  return {
      std::move(all),
      take_matrix(weights, positions, {config.width, config.width})};
}

TokenEncoder::Layer TokenEncoder::take_layer(
    Weights& weights,
    const FlowConfig& config,
    const std::string& name) const {
  int width = config.width, ffn = config.ffn;
  auto vector = [&](const std::string& tensor, int size) {
    return weights.take(name + tensor, {size}, mx::float32);
  };
  auto matrix = [&](const std::string& tensor, int rows, int columns) {
    return take_matrix(weights, {name + tensor}, {rows, columns});
  };
  auto norm = [&](const std::string& tensor) {
    return ops::LayerNorm{
        vector(tensor + ".weight", width),
        vector(tensor + ".bias", width),
        kLayerNormEps};
  };
  auto per_head = [&](const std::string& tensor) {
    auto bias = weights.take(
        name + "self_attn." + tensor, {width / kHeadDim, kHeadDim}, product_);
    return ops::computed(mx::reshape(bias, {width}, mx::Device::cpu));
  };
  std::string attention = name + "self_attn.linear_";
  return {
      norm("norm_mha"),
      take_matrix(
          weights,
          {attention + "q.weight",
           attention + "k.weight",
           attention + "v.weight"},
          {width, width}),
      weights.take_rows(
          {attention + "q.bias", attention + "k.bias", attention + "v.bias"},
          {width},
          mx::float32),
      per_head("pos_bias_u"),
      per_head("pos_bias_v"),
      matrix("self_attn.linear_out.weight", width, width),
      vector("self_attn.linear_out.bias", width),
      norm("norm_ff"),
      matrix("feed_forward.w_1.weight", ffn, width),
      vector("feed_forward.w_1.bias", ffn),
      matrix("feed_forward.w_2.weight", width, ffn),
      vector("feed_forward.w_2.bias", width)};
}

TokenEncoder::Entry TokenEncoder::take_entry(
    Weights& weights,
    const FlowConfig& config,
    const std::string& name) const {
  int width = config.width;
  mx::array scale(std::sqrt(static_cast<float>(width)));
  auto scaled = [&](const std::string& tensor) {
    auto values = weights.take(name + tensor, {width}, mx::float32);
    return ops::computed(mx::multiply(values, scale, mx::Device::cpu));
  };
  return {
      take_matrix(weights, {name + "0.weight"}, {width, width}),
      weights.take(name + "0.bias", {width}, mx::float32),
      {scaled("1.weight"), scaled("1.bias"), kNormEps}};
}

ops::Matrix TokenEncoder::take_matrix(
    Weights& weights,
    const std::vector<std::string>& names,
    const mx::Shape& expected_each) const {
  return weights.take_frame_matrix(
      names, expected_each, weights.dtype(), bits_, stream_);
}

ops::Kernel TokenEncoder::take_conv(
    Weights& weights,
    const std::string& name,
    int taps) const {
  return weights.take_frame_conv(
      name, {width_, width_, taps}, weights.dtype(), bits_, stream_);
}

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
  x = ops::linear(x, mel_w_, {.bias = mel_b_, .dtype = mx::float32}, s);
  return mx::reshape(x, {1, -1, kMels}, s);
}

mx::array TokenEncoder::enter(const Entry& entry, const mx::array& x) const {
  const auto& s = stream_;
  auto y =
      ops::linear(ops::cast(x, product_, s), entry.w, {.bias = entry.b}, s);
  return ops::layer_norm(y, entry.norm, mx::float32, s);
}

mx::array TokenEncoder::look_ahead(const mx::array& x) const {
  const auto& s = stream_;
  auto y = ops::conv1d(
      ops::cast(x, product_, s),
      ahead_w_,
      {{.pad_right = kLookaheadTokens},
       {.bias = ahead_b_, .activation = ops::Activation::leaky_relu}},
      s);
  return ops::conv1d(
      y,
      behind_w_,
      {{.pad_left = kBehindTaps - 1}, {.bias = behind_b_, .residual = x}},
      s);
}

mx::array TokenEncoder::upsample(const mx::array& x) const {
  const auto& s = stream_;
  auto frames = mx::reshape(ops::cast(x, product_, s), {1, -1, width_}, s);
  return ops::conv1d(
      mx::repeat(frames, kFramesPerToken, 1, s),
      upsample_w_,
      {{.pad_left = kUpsampleTaps - 1}, {.bias = upsample_b_}},
      s);
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
        ops::linear(x.normed, layer.qkv, {.bias = layer.qkv_b}, s),
        {positions[i], layer.content_bias, layer.position_bias},
        heads,
        s);
    x = ops::linear_add_norm(
        attended, layer.out, {layer.out_b, x.sum, layer.ffn_norm, product_}, s);
    auto hidden = ops::linear(
        x.normed,
        layer.up,
        {.bias = layer.up_b, .activation = ops::Activation::silu},
        s);
    bool last = i + 1 == count;
    if (last && !norm) {
      return ops::linear(
          hidden, layer.down, {.bias = layer.down_b, .residual = x.sum}, s);
    }
    const auto& next = last ? *norm : layers[i + 1].attention_norm;
    x = ops::linear_add_norm(
        hidden, layer.down, {layer.down_b, x.sum, next, product_}, s);
    if (last) {
      return x.normed;
    }
  }
}

} // namespace nightingale
