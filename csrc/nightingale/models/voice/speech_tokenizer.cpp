#include "nightingale/models/voice/speech_tokenizer.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/ops/frame_attention.h"
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
// Its tensors that are computed and not read.
const std::vector<std::string> kTables{
    "tokenizer._mel_filters",
    "tokenizer.window"};
constexpr ops::Conv1d kHalving{.stride = 2, .pad_left = 1, .pad_right = 1};

// Queries, keys and values. Keys have no bias.
Linear take_qkv(const LayerReader& attention, int width) {
  auto cpu = mx::Device::cpu;
  auto bias = mx::concatenate(
      {attention.tensor("query.bias", {width}),
       mx::zeros({width}, mx::float32, cpu),
       attention.tensor("value.bias", {width})},
      0,
      cpu);
  return {
      attention.matrix({"query", "key", "value"}, {width, width}),
      ops::computed(bias)};
}

// The memory is added to the values it is made of: filters that do both have
// one more at the centre tap.
ops::Kernel take_memory(const LayerReader& attention, int width) {
  auto memory = attention.kernel("fsmn_block", {width, 1, kMemoryTaps});
  std::vector<float> centre(kMemoryTaps);
  centre[kMemoryTaps / 2] = 1.0f;
  return ops::computed(mx::add(
      memory.matrix.w,
      mx::array(centre.data(), {1, kMemoryTaps, 1}),
      mx::Device::cpu));
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
    : SpeechTokenizer(
          LayerReader(weights, {s}, "tokenizer."),
          Config::of(weights.file())) {
  weight_bytes_ = weights.nbytes();
}

SpeechTokenizer SpeechTokenizer::load(
    std::shared_ptr<const TensorFile> s3gen_file,
    mx::Stream s,
    std::vector<std::string>* unknown) {
  // In float32 whatever the file has: a digit depends on the last bits.
  Weights weights(std::move(s3gen_file), mx::float32);
  SpeechTokenizer tokenizer(weights, s);
  if (unknown) {
    *unknown = weights.unused(kTables);
    std::erase_if(*unknown, [](const std::string& name) {
      return !name.starts_with("tokenizer.");
    });
  }
  return tokenizer;
}

SpeechTokenizer::SpeechTokenizer(
    const LayerReader& reader,
    const Config& config)
    : width_(config.width),
      stream_(reader.format().stream),
      frequencies_(ops::rotary_frequencies(kHeadDim, kRotary)),
      first_(reader.convolution(
          "encoder.conv1",
          {width_, kInputMels, kStemTaps},
          kHalving)),
      second_(reader.convolution(
          "encoder.conv2",
          {width_, width_, kStemTaps},
          kHalving)),
      code_(reader.linear(
          {"quantizer._codebook.project_down"},
          {kDigits, width_})) {
  for (int i = 0; i < config.layers; ++i) {
    layers_.emplace_back(reader.child("encoder.blocks", i), config);
  }
}

SpeechTokenizer::Layer::Layer(const LayerReader& block, const Config& config)
    : attention_norm(block.norm("attn_ln", config.width, kNormEps)),
      qkv(take_qkv(block.child("attn"), config.width)),
      memory_w(take_memory(block.child("attn"), config.width)),
      out(block.linear({"attn.out"}, {config.width, config.width})),
      ffn_norm(block.norm("mlp_ln", config.width, kNormEps)),
      up(block.linear({"mlp.0"}, {config.ffn, config.width})),
      down(block.linear({"mlp.2"}, {config.width, config.ffn})) {}

std::vector<int> SpeechTokenizer::tokens(
    const mx::array& samples,
    int max_tokens) const {
  auto mel = tokenizer_mel(samples, stream_);
  int64_t most = int64_t(max_tokens) * kFramesPerCode;
  if (max_tokens > 0 && mel.shape(0) > most) {
    int frames = static_cast<int>(most);
    mel = mx::slice(mel, {0, 0}, {frames, kInputMels}, stream_);
  }
  return rounded(mel);
}

mx::array SpeechTokenizer::log_mel(const mx::array& samples) const {
  return tokenizer_log_mel(samples, stream_);
}

std::vector<int> SpeechTokenizer::tokens_of(
    const mx::array& log_mel,
    float loudest) const {
  auto found = rounded(scaled_log_mel(log_mel, mx::array(loudest), stream_));
  ops::release_idle_memory(stream_);
  return found;
}

std::vector<int> SpeechTokenizer::rounded(const mx::array& mel) const {
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
  require(
      mel.ndim() == 2 && mel.shape(1) == kInputMels && mel.shape(0) >= 1 &&
          mel.shape(0) <= kMostFrames,
      "the speech tokenizer takes 1 to " + std::to_string(kMostFrames) +
          " mel frames of " + std::to_string(kInputMels) +
          " channels, 30 s at most, found shape " + to_string(mel.shape()));
  ops::Epilogue gelu{.activation = ops::Activation::gelu};
  auto x = second_(first_(mx::expand_dims(mel, 0, s), gelu, s), gelu, s);
  for (const auto& layer : layers_) {
    x = run(layer, x);
  }
  auto down = mx::tanh(code_(x, {}, s), s);
  auto code = mx::multiply(down, mx::array(kCodeRange), s);
  return mx::squeeze(code, 0, s);
}

mx::array SpeechTokenizer::run(const Layer& layer, const mx::array& x) const {
  const auto& s = stream_;
  auto normed = ops::layer_norm(x, layer.attention_norm, x.dtype(), s);
  auto qkv = mx::split(layer.qkv(normed, {}, s), 3, -1, s);
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
  auto y = layer.out(attended, {.residual = remembered}, s);
  normed = ops::layer_norm(y, layer.ffn_norm, y.dtype(), s);
  auto hidden = layer.up(normed, {.activation = ops::Activation::gelu}, s);
  return layer.down(hidden, {.residual = y}, s);
}

} // namespace nightingale
