#include "nightingale/models/s3gen/estimator.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

// Points that share a pass are filled up to the most frames of one: each has at
// least this part of them. Rows of fewer than these frames may be multiplied by
// another kernel where they are alone.
constexpr float kLeastPart = 0.7f;
constexpr int kLeastShared = 4;

int frames_of(const Estimator::Point& point) {
  return point.state.x.shape(1);
}

std::vector<std::string> level_names(const FlowConfig& config) {
  std::vector<std::string> names{"down_blocks.0"};
  for (int i = 0; i < config.middle_levels; ++i) {
    names.push_back("mid_blocks." + std::to_string(i));
  }
  names.push_back("up_blocks.0");
  return names;
}

// The layers that see the time, which every frame depends on: in float32, or
// with rows of 16 bits where they are quantized.
LayerReader times_of(const LayerReader& reader) {
  return reader.as(mx::float32, reader.format().bits, 16);
}

Linear take_shifts(const LayerReader& reader, const FlowConfig& config) {
  auto layers = level_names(config);
  for (auto& name : layers) {
    name += ".0.mlp.1";
  }
  return times_of(reader).linear(
      layers, {config.channels, config.time_channels});
}

ops::CausalConv take_conv(
    const LayerReader& reader,
    const std::string& layer,
    int outputs,
    int inputs) {
  auto conv = reader.convolution(layer, {outputs, inputs, kTaps});
  return {conv.w, conv.b, reader.format().stream};
}

// inputs: channels; skip: how many of them come from FrameInput::skip
ops::Resnet
take_resnet(const LayerReader& block, int channels, int inputs, int skip) {
  auto residual = block.pointwise("res_conv", channels, inputs);
  return ops::Resnet(
      {take_conv(block, "block1.block.0", channels, inputs),
       block.norm("block1.block.2", channels, kNormEps),
       take_conv(block, "block2.block.0", channels, channels),
       block.norm("block2.block.2", channels, kNormEps),
       residual.w,
       residual.b},
      skip);
}

ops::FeedForward take_feed_forward(
    const LayerReader& block,
    const FlowConfig& config) {
  int channels = config.channels, ffn = config.estimator_ffn;
  auto out = block.linear({"attn1.to_out.0"}, {channels, config.attention});
  auto norm = block.norm("norm3", channels, kNormEps);
  auto up = block.linear({"ff.net.0.proj"}, {ffn, channels});
  auto down = block.linear({"ff.net.2"}, {channels, ffn});
  return {out.w, out.b, norm, up.w, up.b, down.w, down.b};
}

} // namespace

Estimator::Transformer::Transformer(
    const LayerReader& block,
    const FlowConfig& config)
    : attention_norm(block.norm("norm1", config.channels, kNormEps)),
      qkv(block.matrix(
          {"attn1.to_q", "attn1.to_k", "attn1.to_v"},
          {config.attention, config.channels})),
      feed_forward(take_feed_forward(block, config)) {}

Estimator::Estimator(const LayerReader& reader, const FlowConfig& config)
    : channels_(config.channels),
      heads_(config.attention / kHeadDim),
      stream_(reader.format().stream),
      product_(ops::product_dtype(
          reader.format().matrices,
          reader.format().bits,
          stream_)),
      down_(take_conv(reader, "down_blocks.0.2", channels_, channels_)),
      up_(take_conv(reader, "up_blocks.0.2", channels_, channels_)),
      final_(take_conv(reader, "final_block.block.0", channels_, channels_)),
      final_norm_(reader.norm("final_block.block.2", channels_, kNormEps)),
      mel_(reader.as(reader.format().matrices, 0)
               .pointwise("final_proj", kMels, channels_)),
      time_in_(times_of(reader).linear(
          {"time_mlp.linear_1"},
          {config.time_channels, kInputs})),
      time_out_(times_of(reader).linear(
          {"time_mlp.linear_2"},
          {config.time_channels, config.time_channels})),
      shift_(take_shifts(reader, config)) {
  if (config.meanflow) {
    time_mixer_ = times_of(reader).matrix(
        {"time_embed_mixer"}, {config.time_channels, 2 * config.time_channels});
  }
  for (const auto& name : level_names(config)) {
    auto level = reader.child(name);
    bool last = std::ssize(levels_) == config.middle_levels + 1;
    int inputs = levels_.empty() ? kInputs : last ? 2 * channels_ : channels_;
    auto block = level.child("0");
    levels_.push_back(
        {take_resnet(block, channels_, inputs, last ? channels_ : 0)});
    for (int i = 0; i < config.transformers; ++i) {
      levels_.back().transformers.emplace_back(level.child("1", i), config);
    }
  }
  can_share_ = ops::can_share_frames(network(), stream_);
}

Estimator Estimator::on(mx::Stream s) const {
  Estimator moved = *this;
  moved.stream_ = s;
  return moved;
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
  auto shifts = shift_(ops::activate(time, ops::Activation::mish, s), {}, s);
  FlowTimes times;
  std::vector<mx::array> all;
  int levels = levels_.size();
  for (int i = 0; i < steps; ++i) {
    times.spans.push_back(at[i + 1] - at[i]);
    auto row = mx::slice(shifts, {i, 0}, {i + 1, shifts.shape(1)}, s);
    auto rows =
        mx::contiguous(mx::reshape(row, {levels, channels_}, s), false, s);
    auto& step = times.shifts.emplace_back(FlowTimes::Shifts{rows, {}});
    for (const auto& level : mx::split(rows, levels, 0, s)) {
      step.levels.push_back(mx::flatten(level, s));
    }
    all.insert(all.end(), step.levels.begin(), step.levels.end());
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
  auto x = time_in_(
      mx::array(waves.begin(), {rows, kInputs}),
      {.activation = ops::Activation::silu},
      s);
  return time_out_(x, {}, s);
}

ops::FrameNetwork Estimator::network() const {
  ops::FrameNetwork network{.head_dim = kHeadDim, .dtype = product_};
  for (const auto& level : levels_) {
    network.resnets.push_back(&level.resnet);
    for (const auto& block : level.transformers) {
      network.products.push_back(&block.qkv);
      network.feed_forwards.push_back(&block.feed_forward);
    }
  }
  network.convs = {&down_, &up_, &final_};
  network.products.push_back(&mel_.w);
  return network;
}

std::vector<mx::array> Estimator::velocities(
    const std::vector<Point>& points) const {
  std::vector<Pass> passes;
  for (const auto& group : groups(points)) {
    passes.push_back(pass(group));
  }
  auto results = run(passes);
  std::vector<mx::array> velocities(points.size(), results[0]);
  for (size_t i = 0; i < passes.size(); ++i) {
    const auto& layout = passes[i].input.layout;
    int sequences = layout.sequences();
    for (int k = 0; k < layout.solutions(); ++k) {
      const auto* point = passes[i].points[k];
      mx::Shape begin{k * sequences, 0, 0};
      mx::Shape end{(k + 1) * sequences, frames_of(*point), kMels};
      velocities[point - points.data()] = layout.lengths.empty()
          ? results[i]
          : mx::contiguous(
                mx::slice(results[i], begin, end, stream_), false, stream_);
    }
  }
  return velocities;
}

std::vector<Estimator::Points> Estimator::groups(
    const std::vector<Point>& points) const {
  Points all;
  for (const auto& point : points) {
    all.push_back(&point);
  }
  std::ranges::stable_sort(
      all, std::greater(), [](const auto* point) { return frames_of(*point); });
  std::vector<Points> groups;
  for (const auto* point : all) {
    bool fits = !groups.empty() && can_share_ &&
        groups.back().size() < ops::kSharedSolutions &&
        frames_of(*point) >=
            std::max<float>(
                kLeastShared, kLeastPart * frames_of(*groups.back()[0]));
    if (!fits) {
      groups.emplace_back();
    }
    groups.back().push_back(point);
  }
  return groups;
}

Estimator::Pass Estimator::pass(const Points& points) const {
  const auto& [state, first_shifts, throttle] = *points[0];
  if (points.size() == 1) {
    int batch = state.input.shape(0);
    ops::FrameInput input{
        state.input, batch, product_, std::nullopt, state.written};
    return {points, input, first_shifts.levels};
  }
  const auto& s = stream_;
  std::vector<const ops::OdeState*> states;
  std::vector<mx::array> shifts;
  for (const auto* point : points) {
    states.push_back(&point->state);
    shifts.push_back(mx::expand_dims(point->shifts.all, 1, s));
  }
  auto joined = ops::join_inputs(states, s);
  auto all = mx::concatenate(shifts, 1, s); // [levels, points, channels]
  int levels = levels_.size();
  return {
      points,
      {joined.x, joined.layout, product_},
      mx::split(all, levels, 0, s)};
}

std::vector<mx::array> Estimator::run(const std::vector<Pass>& passes) const {
  const auto& s = stream_;
  std::vector<mx::array> skips, xs;
  for (const auto& [points, input, shifts] : passes) {
    skips.push_back(run(levels_[0], input, shifts[0]));
    xs.push_back(
        ops::causal_conv({skips.back(), input.layout, product_}, down_, s));
  }
  auto keep = [&] {
    std::vector<ops::EvalThrottle::Part> parts;
    for (size_t k = 0; k < passes.size(); ++k) {
      for (const auto* point : passes[k].points) {
        parts.push_back({point->throttle, {xs[k]}});
      }
    }
    ops::EvalThrottle::keep(parts);
  };
  for (size_t i = 1; i + 1 < levels_.size(); ++i) {
    if (i % kLevelsPerEval == 1) {
      keep();
    }
    for (size_t k = 0; k < passes.size(); ++k) {
      const auto& layout = passes[k].input.layout;
      xs[k] = run(levels_[i], {xs[k], layout, product_}, passes[k].shifts[i]);
    }
  }
  keep();
  for (size_t k = 0; k < passes.size(); ++k) {
    const auto& layout = passes[k].input.layout;
    xs[k] = last_level(xs[k], skips[k], passes[k].shifts.back(), layout);
  }
  return xs;
}

// From the middle levels' output to the velocity.
mx::array Estimator::last_level(
    const mx::array& input,
    const mx::array& skip,
    const mx::array& shift,
    const ops::FrameLayout& layout) const {
  const auto& s = stream_;
  auto x = run(levels_.back(), {input, layout, product_, skip}, shift);
  x = ops::causal_conv({x, layout, product_}, up_, s);
  x = ops::normed_conv({x, layout, product_}, final_, final_norm_, s);
  x = mel_(x, {.dtype = mx::float32}, s);
  return mx::reshape(x, {layout.batch, -1, kMels}, s);
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
        ops::linear(x.normed, block.qkv, {}, s), input.layout, heads_, s);
    ops::FeedForwardInput in{attended, x.sum, product_};
    if (i + 1 == blocks.size()) {
      return ops::feed_forward(in, block.feed_forward, s);
    }
    x = ops::feed_forward_norm(
        in, block.feed_forward, blocks[i + 1].attention_norm, s);
  }
}

} // namespace nightingale
