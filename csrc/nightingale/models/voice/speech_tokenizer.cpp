#include "nightingale/models/voice/speech_tokenizer.h"

#include <stdexcept>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/norm.h"
#include "nightingale/ops/rotary.h"

namespace nightingale {

namespace {

constexpr float kNormEps = 1e-5f;
constexpr ops::RotaryScaling kRotary{.theta = 10000.0f, .factor = 1.0f};

constexpr int kInputMels = 128;
constexpr int kFramesPerCode = 4;
constexpr int kMostFrames = 3000; // 30 s
constexpr int kStemTaps = 3;
constexpr int kMemoryTaps = 31;

constexpr int kDigits = 8;
constexpr int kLevels = 3; // of a digit
constexpr float kCodeRange = 0.999f; // of a digit before it is rounded

const std::string kEncoder = "tokenizer.encoder.";
const std::string kQuantizer = "tokenizer.quantizer._codebook.project_down.";

// The memory is added to the values it is made of: filters that do both have
// one more at the centre tap. memory: [C, taps, 1]
mx::array with_own_frame(const mx::array& memory) {
  std::vector<float> centre(kMemoryTaps);
  centre[kMemoryTaps / 2] = 1.0f;
  return ops::computed(mx::add(
      memory, mx::array(centre.data(), {1, kMemoryTaps, 1}), mx::Device::cpu));
}

int token_of(const float* code) {
  int token = 0;
  for (int digit = kDigits - 1; digit >= 0; --digit) {
    int level = 1 + (code[digit] > 0.5f) - (code[digit] < -0.5f);
    token = token * kLevels + level;
  }
  return token;
}

} // namespace

SpeechTokenizer::Config SpeechTokenizer::Config::of(const TensorFile& file) {
  auto fail = [&](const std::string& what) {
    throw Error(file.path() + " has no speech tokenizer: " + what);
  };
  std::string stem = kEncoder + "conv1.weight";
  if (!file.contains(stem)) {
    fail("there is no " + stem);
  }
  Config config;
  config.width = size_of(file, stem, 3, 0);
  config.layers = count_layers(file, kEncoder + "blocks.");
  if (config.layers < 1) {
    fail("there are no tensors named " + kEncoder + "blocks.*");
  }
  config.ffn = size_of(file, kEncoder + "blocks.0.mlp.0.weight", 2, 0);
  if (config.width < 1 || config.width % kHeadDim != 0) {
    fail(
        "its width is " + std::to_string(config.width) +
        ", not a multiple of the head size " + std::to_string(kHeadDim));
  }
  return config;
}

SpeechTokenizer::SpeechTokenizer(Weights& weights, mx::Stream s)
    : SpeechTokenizer(weights, Config::of(weights.file()), s) {}

SpeechTokenizer::SpeechTokenizer(
    Weights& weights,
    const Config& config,
    mx::Stream s)
    : width_(config.width),
      stream_(s),
      frequencies_(ops::rotary_frequencies(kHeadDim, kRotary)),
      first_w_(weights.take_conv(
          kEncoder + "conv1",
          {width_, kInputMels, kStemTaps},
          mx::float32)),
      first_b_(weights.take(kEncoder + "conv1.bias", {width_}, mx::float32)),
      second_w_(weights.take_conv(
          kEncoder + "conv2",
          {width_, width_, kStemTaps},
          mx::float32)),
      second_b_(weights.take(kEncoder + "conv2.bias", {width_}, mx::float32)),
      code_w_(
          weights.take(kQuantizer + "weight", {kDigits, width_}, mx::float32)),
      code_b_(weights.take(kQuantizer + "bias", {kDigits}, mx::float32)) {
  for (int i = 0; i < config.layers; ++i) {
    layers_.push_back(take_layer(
        weights, config, kEncoder + "blocks." + std::to_string(i) + "."));
  }
}

SpeechTokenizer::Layer SpeechTokenizer::take_layer(
    Weights& weights,
    const Config& config,
    std::string name) {
  int width = config.width, ffn = config.ffn;
  auto vector = [&](const std::string& tensor, int size) {
    return weights.take(name + tensor, {size}, mx::float32);
  };
  auto matrix = [&](const std::string& tensor, int rows, int columns) {
    return weights.take(name + tensor, {rows, columns}, mx::float32);
  };
  // Keys have no bias.
  auto qkv_bias = [&] {
    auto cpu = mx::Device::cpu;
    return ops::computed(mx::concatenate(
        {vector("attn.query.bias", width),
         mx::zeros({width}, mx::float32, cpu),
         vector("attn.value.bias", width)},
        0,
        cpu));
  };
  std::string attention = name + "attn.";
  return {
      vector("attn_ln.weight", width),
      vector("attn_ln.bias", width),
      weights.take_rows(
          {attention + "query.weight",
           attention + "key.weight",
           attention + "value.weight"},
          {width, width},
          mx::float32),
      qkv_bias(),
      with_own_frame(weights.take_conv(
          attention + "fsmn_block", {width, 1, kMemoryTaps}, mx::float32)),
      matrix("attn.out.weight", width, width),
      vector("attn.out.bias", width),
      vector("mlp_ln.weight", width),
      vector("mlp_ln.bias", width),
      matrix("mlp.0.weight", ffn, width),
      vector("mlp.0.bias", ffn),
      matrix("mlp.2.weight", width, ffn),
      vector("mlp.2.bias", width)};
}

std::vector<int> SpeechTokenizer::tokens(
    const mx::array& samples,
    int max_tokens) const {
  auto mel = tokenizer_mel(samples, stream_);
  int64_t most = int64_t(max_tokens) * kFramesPerCode;
  if (max_tokens > 0 && mel.shape(0) > most) {
    int frames = static_cast<int>(most);
    mel = mx::slice(mel, {0, 0}, {frames, kInputMels}, stream_);
  }
  auto quantized = mx::contiguous(code(mel), false, stream_);
  mx::eval(quantized);
  std::vector<int> tokens(quantized.shape(0));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = token_of(quantized.data<float>() + i * kDigits);
  }
  return tokens;
}

mx::array SpeechTokenizer::code(const mx::array& mel) const {
  const auto& s = stream_;
  if (mel.ndim() != 2 || mel.shape(1) != kInputMels || mel.shape(0) < 1 ||
      mel.shape(0) > kMostFrames) {
    throw std::invalid_argument(
        "the speech tokenizer takes 1 to " + std::to_string(kMostFrames) +
        " mel frames of " + std::to_string(kInputMels) +
        " channels, 30 s at most, found shape " + to_string(mel.shape()));
  }
  ops::Conv1d halving{.stride = 2, .pad_left = 1, .pad_right = 1};
  auto x = ops::conv1d(
      mx::expand_dims(mel, 0, s),
      first_w_,
      {halving, {.bias = first_b_, .activation = ops::Activation::gelu}},
      s);
  x = ops::conv1d(
      x,
      second_w_,
      {halving, {.bias = second_b_, .activation = ops::Activation::gelu}},
      s);
  for (const auto& layer : layers_) {
    x = run(layer, x);
  }
  auto down = ops::linear(x, code_w_, {.bias = code_b_}, s);
  auto code = mx::multiply(mx::tanh(down, s), mx::array(kCodeRange), s);
  return mx::squeeze(code, 0, s);
}

mx::array SpeechTokenizer::run(const Layer& layer, const mx::array& x) const {
  const auto& s = stream_;
  auto normed = ops::layer_norm(
      x,
      {layer.attention_norm_w, layer.attention_norm_b, kNormEps},
      x.dtype(),
      s);
  auto qkv = mx::split(
      ops::linear(normed, layer.qkv_w, {.bias = layer.qkv_b}, s), 3, -1, s);
  auto attended = ops::full_attention(
      {ops::rotary(qkv[0], frequencies_, 0, s),
       ops::rotary(qkv[1], frequencies_, 0, s),
       qkv[2],
       width_ / kHeadDim},
      s);
  auto remembered = ops::conv1d(
      qkv[2],
      layer.memory_w,
      {{.groups = width_,
        .pad_left = kMemoryTaps / 2,
        .pad_right = kMemoryTaps / 2},
       {.residual = x}},
      s);
  auto y = ops::linear(
      attended, layer.out_w, {.bias = layer.out_b, .residual = remembered}, s);
  normed = ops::layer_norm(
      y, {layer.ffn_norm_w, layer.ffn_norm_b, kNormEps}, y.dtype(), s);
  auto hidden = ops::linear(
      normed,
      layer.up_w,
      {.bias = layer.up_b, .activation = ops::Activation::gelu},
      s);
  return ops::linear(
      hidden, layer.down_w, {.bias = layer.down_b, .residual = y}, s);
}

} // namespace nightingale
