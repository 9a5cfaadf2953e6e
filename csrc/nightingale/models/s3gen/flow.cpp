#include "nightingale/models/s3gen/flow.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/ops/noise.h"
#include "nightingale/ops/ode.h"

namespace nightingale {

namespace {

constexpr float kGuidance = 0.7f;

// Other models' tensors in the same file.
const std::vector<std::string> kOthers{
    "mel2wav.*",
    "tokenizer.*",
    "speaker_encoder.*"};

mx::array frames_of(const std::vector<float>& values) {
  int frames = values.size() / kMels;
  return mx::array(values.begin(), {1, frames, kMels});
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

} // namespace

SoundTokens sound_tokens(const std::vector<int>& tokens) {
  auto begin = std::ranges::find(tokens, kStartSpeech);
  begin = begin == tokens.end() ? tokens.begin() : begin + 1;
  auto end = std::find(begin, tokens.end(), kStopSpeech);
  SoundTokens sound;
  for (auto it = begin; it != end; ++it) {
    if (*it >= 0 && *it < kStartSpeech) {
      sound.tokens.push_back(*it);
    } else {
      ++sound.dropped;
    }
  }
  return sound;
}

Flow::Flow(const LayerReader& flow, const FlowConfig& config)
    : config_(config),
      format_(flow.format()),
      stream_(format_.stream),
      speaker_(flow.as(mx::float32, 0)
                   .linear(
                       {"spk_embed_affine_layer"},
                       {kMels, config.speaker_size})),
      encoder_(flow, config),
      estimator_(flow.child("decoder.estimator"), config) {}

Flow Flow::load(
    std::shared_ptr<const TensorFile> file,
    std::optional<mx::Dtype> dtype,
    mx::Stream s,
    std::vector<std::string>* unknown,
    int bits) {
  FlowConfig config = FlowConfig::of(*file);
  Weights weights(
      file, dtype.value_or(stored_dtype(*file, "flow.input_embedding.weight")));
  LayerFormat format{
      .stream = s,
      .matrices = weights.dtype(),
      .bits = s3gen_bits(*file, bits, s),
      .row_bits = kS3GenRowBits};
  Flow model(LayerReader(weights, format, "flow."), config);
  model.weight_bytes_ = weights.nbytes();
  if (unknown) {
    *unknown = weights.unused(kOthers);
  }
  return model;
}

Flow Flow::on(mx::Stream s) const {
  Flow moved = *this;
  moved.stream_ = s;
  moved.format_.stream = s;
  moved.encoder_ = encoder_.on(s);
  moved.estimator_ = estimator_.on(s);
  return moved;
}

void Flow::check(const MelRequest& request) const {
  const auto& voice = request.voice;
  require(!request.tokens.empty(), "there are no speech tokens to synthesize");
  for (const auto* tokens : {&request.tokens, &voice.prompt_tokens}) {
    for (int token : *tokens) {
      if (token < 0 || token >= config_.sound_tokens) {
        throw std::invalid_argument(
            "speech token " + std::to_string(token) + " is not a sound: 0 to " +
            std::to_string(config_.sound_tokens - 1) + " are");
      }
    }
  }
  require(
      request.steps >= 1,
      "steps is " + std::to_string(request.steps) + "; expected 1 or more");
  require(
      request.first_frame >= 0,
      "first_frame is " + std::to_string(request.first_frame) +
          "; expected 0 or more");
  require(
      static_cast<int>(voice.speaker.size()) == config_.speaker_size,
      "the voice's embedding has " + std::to_string(voice.speaker.size()) +
          " values; this model takes " + std::to_string(config_.speaker_size));
  require(
      voice.prompt_mel.size() % kMels == 0,
      "the voice's prompt_feat does not have " + std::to_string(kMels) +
          " values a frame");
  require(
      all_finite(voice.prompt_mel) && all_finite(voice.speaker),
      "the voice holds values that are not finite");
}

int Flow::new_frames(const MelRequest& request) const {
  check(request);
  int tokens = request.voice.prompt_tokens.size() + request.tokens.size();
  int ahead = request.finalize ? 0 : kLookaheadTokens;
  int frames = kFramesPerToken * (tokens - ahead);
  int prompt = request.voice.prompt_frames();
  require(
      prompt <= kFramesPerToken * tokens,
      "the voice's prompt_feat has " + std::to_string(prompt) +
          " frames, more than its " +
          std::to_string(request.voice.prompt_tokens.size()) + " tokens and " +
          std::to_string(request.tokens.size()) + " new ones make");
  return std::max(0, frames - prompt);
}

mx::array Flow::encode(const MelRequest& request) const {
  return mean(request, request.voice.prompt_frames() + new_frames(request));
}

mx::array Flow::mean(const MelRequest& request, int frames) const {
  std::vector<int> tokens = request.voice.prompt_tokens;
  tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  auto encoded = encoder_.encode(tokens);
  return mx::slice(encoded, {0, 0, 0}, {1, frames, kMels}, stream_);
}

mx::array Flow::speaker(const std::vector<float>& embedding) const {
  double squares = 0;
  for (float value : embedding) {
    squares += double(value) * value;
  }
  float norm = std::max(std::sqrt(squares), 1e-12);
  std::vector<float> unit = embedding;
  for (float& value : unit) {
    value /= norm;
  }
  mx::array x(unit.begin(), {1, static_cast<int>(unit.size())});
  return speaker_(x, {}, stream_);
}

mx::array Flow::noise(const MelRequest& request, int new_frames) const {
  int prompt = request.voice.prompt_frames(), frames = prompt + new_frames;
  if (request.noise) {
    require(
        static_cast<int>(request.noise->size()) == frames * kMels,
        "noise has " + std::to_string(request.noise->size() / kMels) +
            " frames of " + std::to_string(kMels) + "; expected " +
            std::to_string(frames) + ": the prompt's " +
            std::to_string(prompt) + " and " + std::to_string(new_frames) +
            " new ones");
    require(
        all_finite(*request.noise), "noise holds values that are not finite");
    return frames_of(*request.noise);
  }
  auto draw = [&](DrawStage stage, int first, int rows) {
    DrawPosition position{
        request.seed, stage, request.sentence, static_cast<uint32_t>(first)};
    return ops::normal_noise(position, rows, kMels, stream_);
  };
  std::vector<mx::array> parts;
  if (prompt > 0) {
    parts.push_back(draw(DrawStage::flow_prompt, 0, prompt));
  }
  parts.push_back(draw(DrawStage::flow_frame, request.first_frame, new_frames));
  auto drawn = mx::expand_dims(mx::concatenate(parts, 0, stream_), 0, stream_);
  return request.temperature == 1
      ? drawn
      : mx::multiply(drawn, mx::array(request.temperature), stream_);
}

MelState Flow::begin(const MelRequest& request) const {
  const auto& s = stream_;
  int fresh = new_frames(request), prompt = request.voice.prompt_frames();
  int frames = prompt + fresh;
  auto cond = mx::zeros({1, fresh, kMels}, mx::float32, s);
  if (prompt > 0) {
    auto known = frames_of(request.voice.prompt_mel);
    cond = mx::concatenate({known, cond}, 1, s);
  }
  auto voice =
      mx::broadcast_to(speaker(request.voice.speaker), {1, frames, kMels}, s);
  auto x = noise(request, fresh);
  auto known = mx::concatenate({mean(request, frames), voice, cond}, 2, s);
  if (!config_.meanflow) {
    known = mx::concatenate({known, mx::zeros_like(known, s)}, 0, s);
  }
  auto each = mx::broadcast_to(x, {known.shape(0), frames, kMels}, s);
  auto input = mx::astype(
      mx::concatenate({each, known}, 2, s), estimator_.input_dtype(), s);
  ops::OdeState ode{x, input};
  ops::EvalThrottle throttle(s);
  throttle.end_step(ode.results());
  return {estimator_.times(request.steps), prompt, 0, ode, throttle};
}

void Flow::step(MelState& state) const {
  MelState* one[] = {&state};
  step(one);
}

void Flow::step(std::span<MelState* const> states) const {
  std::vector<Estimator::Point> points;
  for (auto* each : states) {
    points.push_back(
        {each->ode, each->times.shifts[each->done], each->throttle});
  }
  auto velocities = estimator_.velocities(points);
  std::vector<ops::EvalThrottle::Part> parts;
  for (size_t i = 0; i < states.size(); ++i) {
    auto& state = *states[i];
    float span = state.times.spans[state.done];
    state.ode = ops::euler_step(
        state.ode, velocities[i], {.guidance = kGuidance, .dt = span}, stream_);
    ++state.done;
    parts.push_back({state.throttle, state.ode.results()});
  }
  ops::EvalThrottle::end_step(parts);
}

mx::array Flow::finish(MelState&& state) const {
  const auto& s = stream_;
  auto x = ops::solution(state.ode);
  int begin = state.prompt_frames, end = x.shape(1);
  auto mel = mx::slice(x, {0, begin, 0}, {1, end, kMels}, s);
  mel = mx::contiguous(mx::squeeze(mel, 0, s), false, s);
  mx::eval(mel);
  {
    MelState done = std::move(state);
  }
  ops::release_idle_memory(s);
  return mel;
}

} // namespace nightingale
