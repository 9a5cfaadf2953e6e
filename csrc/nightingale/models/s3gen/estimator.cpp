#include "nightingale/models/s3gen/estimator.h"

#include <cmath>
#include <numbers>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

namespace {

constexpr float kNormEps = 1e-5f;
constexpr int kTaps = 3;
constexpr int kInputs = 4 * kMels;
constexpr int kLevelsPerEval = 2; // between calls of EvalThrottle::keep

const std::string kEstimator = "flow.decoder.estimator.";

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

Estimator::Estimator(
    Weights& weights,
    const FlowConfig& config,
    int bits,
    mx::Stream s)
    : channels_(config.channels),
      heads_(config.attention / kHeadDim),
      bits_(bits),
      stream_(s),
      product_(ops::product_dtype(weights.dtype(), s)),
      down_(take_conv(weights, kEstimator + "down_blocks.0.2", channels_)),
      up_(take_conv(weights, kEstimator + "up_blocks.0.2", channels_)),
      final_(take_conv(weights, kEstimator + "final_block.block.0", channels_)),
      final_norm_(take_norm(weights, kEstimator + "final_block.block.2")),
      mel_w_(ops::Kernel(weights.take_conv(
                             kEstimator + "final_proj",
                             {kMels, channels_, 1}))
                 .one_tap()),
      mel_b_(
          weights.take(kEstimator + "final_proj.bias", {kMels}, mx::float32)),
      time_in_w_(take_matrix(
          weights,
          {kEstimator + "time_mlp.linear_1.weight"},
          {config.time_channels, kInputs},
          mx::float32)),
      time_in_b_(weights.take(
          kEstimator + "time_mlp.linear_1.bias",
          {config.time_channels},
          mx::float32)),
      time_out_w_(take_matrix(
          weights,
          {kEstimator + "time_mlp.linear_2.weight"},
          {config.time_channels, config.time_channels},
          mx::float32)),
      time_out_b_(weights.take(
          kEstimator + "time_mlp.linear_2.bias",
          {config.time_channels},
          mx::float32)),
      shift_w_(take_matrix(
          weights,
          with(level_names(config), "0.mlp.1.weight"),
          {channels_, config.time_channels},
          mx::float32)),
      shift_b_(weights.take_rows(
          with(level_names(config), "0.mlp.1.bias"),
          {channels_},
          mx::float32)) {
  if (config.meanflow) {
    time_mixer_ = take_matrix(
        weights,
        {kEstimator + "time_embed_mixer.weight"},
        {config.time_channels, 2 * config.time_channels},
        mx::float32);
  }
  auto names = level_names(config);
  for (size_t i = 0; i < names.size(); ++i) {
    bool last = i + 1 == names.size();
    int inputs = i == 0 ? kInputs : last ? 2 * channels_ : channels_;
    levels_.push_back(take_level(weights, config, names[i], inputs, last));
  }
}

ops::Matrix Estimator::take_matrix(
    Weights& weights,
    const std::vector<std::string>& names,
    const mx::Shape& expected_each,
    mx::Dtype dtype) const {
  return weights.take_frame_matrix(names, expected_each, dtype, bits_, stream_);
}

ops::CausalConv
Estimator::take_conv(Weights& weights, const std::string& name, int inputs) {
  return {
      weights.take_frame_conv(
          name, {channels_, inputs, kTaps}, weights.dtype(), bits_, stream_),
      weights.take(name + ".bias", {channels_}, mx::float32),
      stream_};
}

ops::LayerNorm Estimator::take_norm(Weights& weights, const std::string& name) {
  return {
      weights.take(name + ".weight", {channels_}, mx::float32),
      weights.take(name + ".bias", {channels_}, mx::float32),
      kNormEps};
}

Estimator::Transformer Estimator::take_transformer(
    Weights& weights,
    const FlowConfig& config,
    const std::string& name) {
  int channels = channels_, inner = config.attention;
  int ffn = config.estimator_ffn;
  auto vector = [&](const std::string& tensor, int size) {
    return weights.take(name + tensor, {size}, mx::float32);
  };
  auto matrix = [&](const std::string& tensor, int rows, int columns) {
    return take_matrix(
        weights, {name + tensor}, {rows, columns}, weights.dtype());
  };
  return {
      take_norm(weights, name + "norm1"),
      take_matrix(
          weights,
          {name + "attn1.to_q.weight",
           name + "attn1.to_k.weight",
           name + "attn1.to_v.weight"},
          {inner, channels},
          weights.dtype()),
      {matrix("attn1.to_out.0.weight", channels, inner),
       vector("attn1.to_out.0.bias", channels),
       take_norm(weights, name + "norm3"),
       matrix("ff.net.0.proj.weight", ffn, channels),
       vector("ff.net.0.proj.bias", ffn),
       matrix("ff.net.2.weight", channels, ffn),
       vector("ff.net.2.bias", channels)}};
}

Estimator::Level Estimator::take_level(
    Weights& weights,
    const FlowConfig& config,
    const std::string& name,
    int inputs,
    bool skip) {
  auto residual = weights.take_frame_conv(
      name + "0.res_conv",
      {channels_, inputs, 1},
      weights.dtype(),
      bits_,
      stream_);
  Level level{
      ops::Resnet(
          {take_conv(weights, name + "0.block1.block.0", inputs),
           take_norm(weights, name + "0.block1.block.2"),
           take_conv(weights, name + "0.block2.block.0", channels_),
           take_norm(weights, name + "0.block2.block.2"),
           residual.one_tap(),
           weights.take(name + "0.res_conv.bias", {channels_}, mx::float32)},
          skip ? channels_ : 0),
      {}};
  for (int i = 0; i < config.transformers; ++i) {
    level.transformers.push_back(take_transformer(
        weights, config, name + "1." + std::to_string(i) + "."));
  }
  return level;
}

FlowTimes Estimator::times(int steps) const {
  std::lock_guard<std::mutex> lock(kept_times_->mutex);
  auto& kept = kept_times_->times;
  if (static_cast<int>(kept.spans.size()) != steps) {
    kept = compute_times(steps);
  }
  return kept;
}

FlowTimes Estimator::compute_times(int steps) const {
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
    time = ops::linear(
        mx::concatenate({part(0), part(1)}, 1, s), *time_mixer_, {}, s);
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
    const ops::OdeState& state,
    const std::vector<mx::array>& shifts,
    ops::EvalThrottle& throttle) const {
  const auto& s = stream_;
  int batch = state.input.shape(0);
  ops::FrameInput input{
      state.input, batch, product_, std::nullopt, state.written};
  auto skip = run(levels_[0], input, shifts[0]);
  auto frames = [&](const mx::array& x) {
    return ops::FrameInput{x, batch, product_};
  };
  auto x = ops::causal_conv(frames(skip), down_, s);
  for (size_t i = 1; i + 1 < levels_.size(); ++i) {
    if (i % kLevelsPerEval == 1) {
      throttle.keep(x);
    }
    x = run(levels_[i], frames(x), shifts[i]);
  }
  throttle.keep(x);
  x = run(levels_.back(), {x, batch, product_, skip}, shifts.back());
  x = ops::causal_conv(frames(x), up_, s);
  x = ops::normed_conv(frames(x), final_, final_norm_, s);
  x = ops::linear(x, mel_w_, {.bias = mel_b_, .dtype = mx::float32}, s);
  return mx::reshape(x, {batch, -1, kMels}, s);
}

mx::array Estimator::run(
    const Level& level,
    const ops::FrameInput& input,
    const mx::array& shift) const {
  const auto& s = stream_;
  const auto& blocks = level.transformers;
  auto x =
      ops::resnet(input, level.resnet, {shift, blocks[0].attention_norm}, s);
  for (size_t i = 0;; ++i) {
    const auto& block = blocks[i];
    auto attended = ops::frame_attention(
        ops::linear(x.normed, block.qkv, {}, s), input.batch, heads_, s);
    ops::FeedForwardInput in{attended, x.sum, product_};
    if (i + 1 == blocks.size()) {
      return ops::feed_forward(in, block.feed_forward, s);
    }
    x = ops::feed_forward_norm(
        in, block.feed_forward, blocks[i + 1].attention_norm, s);
  }
}

} // namespace nightingale
