#include "nightingale/s3gen/estimator.h"

#include <cmath>
#include <numbers>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/norm.h"
#include "nightingale/ops/pace.h"

namespace nightingale {

namespace {

constexpr float kNormEps = 1e-5f;
constexpr int kTaps = 3;
constexpr int kInputs = 4 * kMels;
constexpr ops::Conv1d kCausal{.pad_left = kTaps - 1};

const std::string kEstimator = "flow.decoder.estimator.";

// Columns [begin, begin + count) of the last axis, in memory of their own.
mx::array columns(const mx::array& w, int begin, int count) {
  mx::Shape start(w.ndim(), 0), stop = w.shape();
  start.back() = begin;
  stop.back() = begin + count;
  auto part = mx::contiguous(
      mx::slice(w, start, stop, mx::Device::cpu), false, mx::Device::cpu);
  mx::eval(part);
  return part;
}

std::vector<std::string> level_names(const FlowConfig& config) {
  std::vector<std::string> names{kEstimator + "down_blocks.0."};
  for (int i = 0; i < config.middle_levels; ++i) {
    names.push_back(kEstimator + "mid_blocks." + std::to_string(i) + ".");
  }
  names.push_back(kEstimator + "up_blocks.0.");
  return names;
}

// `names`, each with `tensor` behind it.
std::vector<std::string> with(
    std::vector<std::string> names,
    const std::string& tensor) {
  for (auto& name : names) {
    name += tensor;
  }
  return names;
}

} // namespace

Estimator::Estimator(Weights& weights, const FlowConfig& config, mx::Stream s)
    : channels_(config.channels),
      heads_(config.attention / kHeadDim),
      stream_(s),
      product_(ops::product_dtype(weights.dtype(), s)),
      down_(take_conv(weights, kEstimator + "down_blocks.0.2", channels_)),
      up_(take_conv(weights, kEstimator + "up_blocks.0.2", channels_)),
      final_(take_block(
          weights,
          kEstimator + "final_block.",
          channels_,
          channels_)),
      mel_w_(mx::squeeze(
          weights.take_conv(kEstimator + "final_proj", {kMels, channels_, 1}),
          1,
          mx::Device::cpu)),
      mel_b_(
          weights.take(kEstimator + "final_proj.bias", {kMels}, mx::float32)),
      time_in_w_(weights.take(
          kEstimator + "time_mlp.linear_1.weight",
          {config.time_channels, kInputs},
          mx::float32)),
      time_in_b_(weights.take(
          kEstimator + "time_mlp.linear_1.bias",
          {config.time_channels},
          mx::float32)),
      time_out_w_(weights.take(
          kEstimator + "time_mlp.linear_2.weight",
          {config.time_channels, config.time_channels},
          mx::float32)),
      time_out_b_(weights.take(
          kEstimator + "time_mlp.linear_2.bias",
          {config.time_channels},
          mx::float32)),
      shift_w_(weights.take_rows(
          with(level_names(config), "0.mlp.1.weight"),
          {channels_, config.time_channels},
          mx::float32)),
      shift_b_(weights.take_rows(
          with(level_names(config), "0.mlp.1.bias"),
          {channels_},
          mx::float32)) {
  if (config.meanflow) {
    time_mixer_ = weights.take(
        kEstimator + "time_embed_mixer.weight",
        {config.time_channels, 2 * config.time_channels},
        mx::float32);
  }
  auto names = level_names(config);
  for (size_t i = 0; i < names.size(); ++i) {
    bool last = i + 1 == names.size();
    int inputs = i == 0 ? kInputs : last ? 2 * channels_ : channels_;
    levels_.push_back(take_level(weights, config, names[i], inputs, last));
  }
  mx::eval(mel_w_);
}

Estimator::Conv
Estimator::take_conv(Weights& weights, const std::string& name, int channels) {
  return {
      weights.take_conv(name, {channels, channels, kTaps}),
      weights.take(name + ".bias", {channels}, mx::float32)};
}

Estimator::Block Estimator::take_block(
    Weights& weights,
    const std::string& name,
    int inputs,
    int channels) {
  return {
      weights.take_conv(name + "block.0", {channels, inputs, kTaps}),
      weights.take(name + "block.0.bias", {channels}, mx::float32),
      weights.take(name + "block.2.weight", {channels}, mx::float32),
      weights.take(name + "block.2.bias", {channels}, mx::float32)};
}

Estimator::Level Estimator::take_level(
    Weights& weights,
    const FlowConfig& config,
    const std::string& name,
    int inputs,
    bool skip) {
  int channels = channels_, inner = config.attention;
  Resnet resnet{
      take_block(weights, name + "0.block1.", inputs, channels),
      take_block(weights, name + "0.block2.", channels, channels),
      mx::squeeze(
          weights.take_conv(name + "0.res_conv", {channels, inputs, 1}),
          1,
          mx::Device::cpu),
      weights.take(name + "0.res_conv.bias", {channels}, mx::float32),
      std::nullopt,
      std::nullopt};
  mx::eval(resnet.residual_w);
  if (skip) {
    resnet.first_skip_w = columns(resnet.first.w, channels, channels);
    resnet.first.w = columns(resnet.first.w, 0, channels);
    resnet.residual_skip_w = columns(resnet.residual_w, channels, channels);
    resnet.residual_w = columns(resnet.residual_w, 0, channels);
  }
  Level level{std::move(resnet), {}};
  for (int i = 0; i < config.transformers; ++i) {
    std::string block = name + "1." + std::to_string(i) + ".";
    auto vector = [&](const std::string& tensor, int size) {
      return weights.take(block + tensor, {size}, mx::float32);
    };
    auto matrix = [&](const std::string& tensor, int rows, int columns) {
      return weights.take(block + tensor, {rows, columns});
    };
    level.transformers.push_back(
        {vector("norm1.weight", channels),
         vector("norm1.bias", channels),
         weights.take_rows(
             {block + "attn1.to_q.weight",
              block + "attn1.to_k.weight",
              block + "attn1.to_v.weight"},
             {inner, channels}),
         matrix("attn1.to_out.0.weight", channels, inner),
         vector("attn1.to_out.0.bias", channels),
         vector("norm3.weight", channels),
         vector("norm3.bias", channels),
         matrix("ff.net.0.proj.weight", config.estimator_ffn, channels),
         vector("ff.net.0.proj.bias", config.estimator_ffn),
         matrix("ff.net.2.weight", channels, config.estimator_ffn),
         vector("ff.net.2.bias", channels)});
  }
  return level;
}

FlowTimes Estimator::times(int steps) const {
  const auto& s = stream_;
  std::vector<float> at(steps + 1);
  for (int i = 0; i <= steps; ++i) {
    float even = static_cast<float>(i) / static_cast<float>(steps);
    float angle = even * 0.5f * std::numbers::pi_v<float>;
    at[i] = time_mixer_ ? even : 1.0f - std::cos(angle);
  }
  auto embedded = embed_times(at); // of all ends, first to last
  auto part = [&](int begin) {
    return mx::slice(
        embedded, {begin, 0}, {begin + steps, embedded.shape(1)}, s);
  };
  auto time = part(0);
  if (time_mixer_) {
    time =
        ops::linear(mx::concatenate({part(0), part(1)}, 1, s), *time_mixer_, s);
  }
  auto shifts = ops::linear(
      ops::activate(time, ops::Activation::mish, s),
      shift_w_,
      {.bias = shift_b_},
      s);
  FlowTimes times;
  std::vector<mx::array> all;
  for (int i = 0; i < steps; ++i) {
    times.spans.push_back(at[i + 1] - at[i]);
    auto& levels = times.shifts.emplace_back();
    for (size_t level = 0; level < levels_.size(); ++level) {
      int begin = level * channels_;
      auto row = mx::slice(shifts, {i, begin}, {i + 1, begin + channels_}, s);
      levels.push_back(mx::contiguous(mx::flatten(row, s), false, s));
      all.push_back(levels.back());
    }
  }
  mx::eval(all);
  return times;
}

mx::array Estimator::embed_times(const std::vector<float>& times) const {
  const auto& s = stream_;
  int rows = times.size(), half = kInputs / 2;
  std::vector<float> waves(rows * kInputs);
  float step = static_cast<float>(std::log(10000.0) / (half - 1));
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < half; ++i) {
      float angle = 1000.0f * times[row] * std::exp(i * -step);
      waves[row * kInputs + i] = std::sin(angle);
      waves[row * kInputs + half + i] = std::cos(angle);
    }
  }
  auto x = ops::linear(
      mx::array(waves.begin(), {rows, kInputs}),
      time_in_w_,
      {.bias = time_in_b_, .activation = ops::Activation::silu},
      s);
  return ops::linear(x, time_out_w_, {.bias = time_out_b_}, s);
}

mx::array Estimator::velocity(
    const mx::array& input,
    const std::vector<mx::array>& shifts) const {
  const auto& s = stream_;
  ops::Pace pace(s);
  auto skip = run(levels_[0], input, std::nullopt, shifts[0]);
  auto x = run(down_, skip);
  for (size_t i = 1; i + 1 < levels_.size(); ++i) {
    pace.keep(x);
    x = run(levels_[i], x, std::nullopt, shifts[i]);
  }
  pace.keep(x);
  x = run(up_, run(levels_.back(), x, skip, shifts.back()));
  x = ops::conv1d(x, final_.w, kCausal, {.bias = final_.b}, s);
  x = ops::norm_mish(
      x, final_.norm_w, final_.norm_b, kNormEps, std::nullopt, product_, s);
  return ops::linear(x, mel_w_, {.bias = mel_b_, .dtype = mx::float32}, s);
}

mx::array Estimator::run(const Conv& conv, const mx::array& x) const {
  return ops::conv1d(
      ops::cast(x, product_, stream_),
      conv.w,
      kCausal,
      {.bias = conv.b},
      stream_);
}

mx::array Estimator::run(
    const Level& level,
    const mx::array& input,
    const std::optional<mx::array>& skip,
    const mx::array& shift) const {
  auto x = run(level.resnet, input, skip, shift);
  for (const auto& transformer : level.transformers) {
    x = run(transformer, x);
  }
  return x;
}

mx::array Estimator::run(
    const Resnet& resnet,
    const mx::array& input,
    const std::optional<mx::array>& skip,
    const mx::array& shift) const {
  const auto& s = stream_;
  const auto &first = resnet.first, &second = resnet.second;
  auto x = ops::cast(input, product_, s);
  ops::Epilogue first_sum{.bias = first.b};
  std::optional<mx::array> beside;
  if (skip) {
    beside = ops::cast(*skip, product_, s);
    first_sum = {
        .residual = ops::conv1d(
            *beside, *resnet.first_skip_w, kCausal, {.bias = first.b}, s)};
  }
  auto h = ops::conv1d(x, first.w, kCausal, first_sum, s);
  h = ops::norm_mish(
      h, first.norm_w, first.norm_b, kNormEps, shift, product_, s);
  h = ops::conv1d(h, second.w, kCausal, {.bias = second.b}, s);
  h = ops::norm_mish(
      h, second.norm_w, second.norm_b, kNormEps, std::nullopt, mx::float32, s);
  if (skip) {
    h = ops::linear(*beside, *resnet.residual_skip_w, {.residual = h}, s);
  }
  return ops::linear(
      x, resnet.residual_w, {.bias = resnet.residual_b, .residual = h}, s);
}

mx::array Estimator::run(const Transformer& block, const mx::array& input)
    const {
  const auto& s = stream_;
  auto normed = ops::layer_norm(
      input,
      block.attention_norm_w,
      block.attention_norm_b,
      kNormEps,
      product_,
      s);
  auto qkv = mx::split(ops::linear(normed, block.qkv_w, s), 3, -1, s);
  auto attended = ops::full_attention(qkv[0], qkv[1], qkv[2], heads_, s);
  auto x = ops::linear(
      attended, block.out_w, {.bias = block.out_b, .residual = input}, s);
  normed = ops::layer_norm(
      x, block.ffn_norm_w, block.ffn_norm_b, kNormEps, product_, s);
  auto hidden = ops::linear(
      normed,
      block.up_w,
      {.bias = block.up_b, .activation = ops::Activation::gelu},
      s);
  return ops::linear(
      hidden, block.down_w, {.bias = block.down_b, .residual = x}, s);
}

} // namespace nightingale
