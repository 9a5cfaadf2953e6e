#include "nightingale/s3gen/token_encoder.h"

#include <cmath>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/norm.h"

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
    mx::Stream s)
    : width_(config.width),
      stream_(s),
      product_(ops::vector_dtype(weights.dtype(), s)),
      table_(weights.take(
          "flow.input_embedding.weight",
          {config.codes, config.width})),
      entry_(take_entry(weights, config, kEncoder + "embed.out.")),
      upper_entry_(take_entry(weights, config, kEncoder + "up_embed.out.")),
      ahead_w_(weights.take_conv(
          kEncoder + "pre_lookahead_layer.conv1",
          {width_, width_, kLookaheadTokens + 1})),
      ahead_b_(weights.take(
          kEncoder + "pre_lookahead_layer.conv1.bias",
          {width_},
          mx::float32)),
      behind_w_(weights.take_conv(
          kEncoder + "pre_lookahead_layer.conv2",
          {width_, width_, kBehindTaps})),
      behind_b_(weights.take(
          kEncoder + "pre_lookahead_layer.conv2.bias",
          {width_},
          mx::float32)),
      upsample_w_(weights.take_conv(
          kEncoder + "up_layer.conv",
          {width_, width_, kUpsampleTaps})),
      upsample_b_(
          weights.take(kEncoder + "up_layer.conv.bias", {width_}, mx::float32)),
      norm_w_(
          weights.take(kEncoder + "after_norm.weight", {width_}, mx::float32)),
      norm_b_(
          weights.take(kEncoder + "after_norm.bias", {width_}, mx::float32)),
      mel_w_(weights.take("flow.encoder_proj.weight", {kMels, width_})),
      mel_b_(weights.take("flow.encoder_proj.bias", {kMels}, mx::float32)) {
  for (int i = 0; i < config.layers; ++i) {
    layers_.push_back(take_layer(
        weights,
        config,
        kEncoder + "encoders." + std::to_string(i) + ".",
        product_));
  }
  for (int i = 0; i < config.upper_layers; ++i) {
    upper_layers_.push_back(take_layer(
        weights,
        config,
        kEncoder + "up_encoders." + std::to_string(i) + ".",
        product_));
  }
}

TokenEncoder::Layer TokenEncoder::take_layer(
    Weights& weights,
    const FlowConfig& config,
    std::string name,
    mx::Dtype product) {
  int width = config.width, ffn = config.ffn;
  auto vector = [&](const std::string& tensor, int size) {
    return weights.take(name + tensor, {size}, mx::float32);
  };
  auto matrix = [&](const std::string& tensor, int rows, int columns) {
    return weights.take(name + tensor, {rows, columns});
  };
  auto per_head = [&](const std::string& tensor) {
    auto bias = weights.take(
        name + "self_attn." + tensor, {width / kHeadDim, kHeadDim}, product);
    return mx::reshape(bias, {width}, mx::Device::cpu);
  };
  std::string attention = name + "self_attn.linear_";
  return {
      vector("norm_mha.weight", width),
      vector("norm_mha.bias", width),
      weights.take_rows(
          {attention + "q.weight",
           attention + "k.weight",
           attention + "v.weight"},
          {width, width}),
      weights.take_rows(
          {attention + "q.bias", attention + "k.bias", attention + "v.bias"},
          {width},
          mx::float32),
      matrix("self_attn.linear_pos.weight", width, width),
      per_head("pos_bias_u"),
      per_head("pos_bias_v"),
      matrix("self_attn.linear_out.weight", width, width),
      vector("self_attn.linear_out.bias", width),
      vector("norm_ff.weight", width),
      vector("norm_ff.bias", width),
      matrix("feed_forward.w_1.weight", ffn, width),
      vector("feed_forward.w_1.bias", ffn),
      matrix("feed_forward.w_2.weight", width, ffn),
      vector("feed_forward.w_2.bias", width)};
}

TokenEncoder::Entry TokenEncoder::take_entry(
    Weights& weights,
    const FlowConfig& config,
    std::string name) {
  int width = config.width;
  mx::array scale(std::sqrt(static_cast<float>(width)));
  auto scaled = [&](const std::string& tensor) {
    auto values = weights.take(name + tensor, {width}, mx::float32);
    auto product = mx::multiply(values, scale, mx::Device::cpu);
    mx::eval(product);
    return product;
  };
  return {
      weights.take(name + "0.weight", {width, width}),
      weights.take(name + "0.bias", {width}, mx::float32),
      scaled("1.weight"),
      scaled("1.bias")};
}

mx::array TokenEncoder::encode(const std::vector<int>& tokens) const {
  const auto& s = stream_;
  mx::array ids(tokens.data(), {static_cast<int>(tokens.size())});
  auto x = mx::expand_dims(ops::embedding(table_, ids, s), 0, s);
  x = run(layers_, look_ahead(enter(entry_, x)));
  x = run(upper_layers_, enter(upper_entry_, upsample(x)));
  x = ops::layer_norm(x, norm_w_, norm_b_, kNormEps, product_, s);
  return ops::linear(x, mel_w_, {.bias = mel_b_, .dtype = mx::float32}, s);
}

mx::array TokenEncoder::enter(const Entry& entry, const mx::array& x) const {
  const auto& s = stream_;
  auto y =
      ops::linear(ops::cast(x, product_, s), entry.w, {.bias = entry.b}, s);
  return ops::layer_norm(
      y, entry.norm_w, entry.norm_b, kNormEps, mx::float32, s);
}

mx::array TokenEncoder::look_ahead(const mx::array& x) const {
  const auto& s = stream_;
  auto y = ops::conv1d(
      ops::cast(x, product_, s),
      ahead_w_,
      {.pad_right = kLookaheadTokens},
      {.bias = ahead_b_, .activation = ops::Activation::leaky_relu},
      s);
  return ops::conv1d(
      y,
      behind_w_,
      {.pad_left = kBehindTaps - 1},
      {.bias = behind_b_, .residual = x},
      s);
}

mx::array TokenEncoder::upsample(const mx::array& x) const {
  const auto& s = stream_;
  auto twice = mx::repeat(ops::cast(x, product_, s), kFramesPerToken, 1, s);
  return ops::conv1d(
      twice,
      upsample_w_,
      {.pad_left = kUpsampleTaps - 1},
      {.bias = upsample_b_},
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

mx::array TokenEncoder::run(const std::vector<Layer>& layers, mx::array x)
    const {
  const auto& s = stream_;
  auto distance = distances(x.shape(1));
  for (const auto& layer : layers) {
    auto normed = ops::layer_norm(
        x,
        layer.attention_norm_w,
        layer.attention_norm_b,
        kLayerNormEps,
        product_,
        s);
    auto qkv = mx::split(
        ops::linear(normed, layer.qkv_w, {.bias = layer.qkv_b}, s), 3, -1, s);
    auto attended = ops::relative_attention(
        qkv[0],
        qkv[1],
        qkv[2],
        ops::linear(distance, layer.position_w, s),
        layer.content_bias,
        layer.position_bias,
        width_ / kHeadDim,
        s);
    x = ops::linear(
        attended, layer.out_w, {.bias = layer.out_b, .residual = x}, s);
    normed = ops::layer_norm(
        x, layer.ffn_norm_w, layer.ffn_norm_b, kLayerNormEps, product_, s);
    auto hidden = ops::linear(
        normed,
        layer.up_w,
        {.bias = layer.up_b, .activation = ops::Activation::silu},
        s);
    x = ops::linear(
        hidden, layer.down_w, {.bias = layer.down_b, .residual = x}, s);
  }
  return x;
}

} // namespace nightingale
