#include "nightingale/t3/speech_tokens.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace nightingale {

namespace {

void require(bool condition, const std::string& message) {
  if (!condition) {
    throw std::invalid_argument(message);
  }
}

void check(const SpeechRequest& request, const T3Config& config) {
  const auto& sampling = request.sampling;
  auto shown = [](float value) { return std::to_string(value); };
  require(
      std::isfinite(sampling.temperature) && sampling.temperature >= 0.0f,
      "temperature must be 0 or more, not " + shown(sampling.temperature));
  require(
      std::isfinite(sampling.repetition_penalty) &&
          sampling.repetition_penalty > 0.0f,
      "repetition_penalty must be above 0, not " +
          shown(sampling.repetition_penalty));
  require(
      sampling.min_p >= 0.0f && sampling.min_p <= 1.0f,
      "min_p must be between 0 and 1, not " + shown(sampling.min_p));
  require(
      sampling.top_p >= 0.0f && sampling.top_p <= 1.0f,
      "top_p must be between 0 and 1, not " + shown(sampling.top_p));
  require(
      std::isfinite(request.cfg_weight) && request.cfg_weight >= 0.0f,
      "cfg_weight must be 0 or more, not " + shown(request.cfg_weight));
  require(
      request.max_tokens >= 1,
      "max_tokens must be 1 or more, not " +
          std::to_string(request.max_tokens));
  require(
      request.max_tokens <= config.speech_positions,
      "max_tokens is " + std::to_string(request.max_tokens) +
          "; this model has positions for " +
          std::to_string(config.speech_positions));
  require(
      !request.analyser || !config.settings.alignment_heads.empty(),
      "this model names no alignment heads, which the analyser needs");
}

// The analyser judges by the last three text tokens and the first four, which
// in a short text are the same: it would stop in the middle of the only word,
// and a model without an analyser may not find the end at all. So a short text
// is given time to be said, and no more than that.
constexpr int kShortText = 5; // text tokens
constexpr int kShortestSpeech = 5; // speech tokens, 200 ms
constexpr int kPatience = 4; // speech tokens a text token after the end
constexpr int kLongestSpeech[] = {25, 10}; // speech tokens, and a text token

void bound_short_text(SpeechRequest& request, ops::AlignmentLimits& limits) {
  int text = request.text_tokens.size();
  if (text <= kShortText) {
    limits.after_end += kPatience * text;
    request.min_tokens = std::max(request.min_tokens, kShortestSpeech);
    int longest = kLongestSpeech[0] + kLongestSpeech[1] * text;
    request.max_tokens =
        std::min(request.max_tokens, std::max(longest, request.min_tokens));
  }
  limits.first_stop = request.min_tokens;
}

} // namespace

SpeechTokens::SpeechTokens(
    std::shared_ptr<const T3> model,
    SpeechRequest request)
    : model_(std::move(model)),
      request_(std::move(request)),
      rows_(request_.cfg_weight > 0.0f ? 2 : 1),
      seen_(mx::zeros(
          {model_->config().speech_vocabulary},
          mx::uint8,
          model_->stream())),
      token_(mx::array({kStartSpeech})),
      alignment_(ops::AlignmentState::start()) {
  check(request_, model_->config());
  bound_short_text(request_, limits_);
  prompt_ = model_->prompt(request_.text_tokens, rows_);
  int text_count = request_.text_tokens.size() + 2; // with start and stop
  text_ = {request_.voice.length, text_count, 1, {}};
  cache_ = model_->begin(
      request_.voice, rows_, prompt_->shape(1) + request_.max_tokens);
  seen_ = ops::mark_seen(seen_, token_, model_->stream());
}

// Feeds the last token in and gives the logits of what follows: [rows, V].
mx::array SpeechTokens::step_logits(TextAttention* text_attention) {
  auto x = model_->speech(token_, queued_, rows_);
  if (prompt_) {
    // The reference gives the start of speech twice: once at the end of the
    // prompt, once as the first token fed in.
    x = mx::concatenate({*prompt_, x}, 1, model_->stream());
    prompt_.reset();
  }
  auto logits = model_->forward(x, cache_, 1, text_attention);
  return mx::reshape(logits, {rows_, -1}, model_->stream());
}

void SpeechTokens::queue_step() {
  const auto& s = model_->stream();
  TextAttention text_attention = text_;
  text_attention.rows = queued_ == 0 ? 2 : 1; // both starts of speech
  auto logits = ops::guide(
      step_logits(request_.analyser ? &text_attention : nullptr),
      request_.cfg_weight,
      s);
  if (request_.analyser) {
    auto step = ops::alignment_step(
        text_attention.weights,
        logits,
        token_,
        alignment_,
        limits_,
        kStopSpeech,
        s);
    logits = step.logits;
    alignment_ = step.state;
  }
  if (queued_ < request_.min_tokens) {
    logits = ops::forbid_token(logits, kStopSpeech, s);
  }
  auto key = draw_key(
      request_.seed, DrawStage::speech_token, request_.sentence, queued_);
  token_ = ops::draw_token(
      ops::filter_logits(logits, seen_, request_.sampling, s), key, s);
  seen_ = ops::mark_seen(seen_, token_, s);
  ++queued_;
  mx::async_eval({token_, seen_, alignment_.marks, alignment_.sums});
  queue_.push_back({token_, alignment_.marks});
}

std::optional<int> SpeechTokens::next() {
  size_t ahead = ops::queues_ahead(model_->stream()) ? 2 : 1;
  while (!stopped_ && queue_.size() < ahead && queued_ < request_.max_tokens) {
    queue_step();
  }
  if (stopped_ || queue_.empty()) {
    return std::nullopt;
  }
  Step step = queue_.front();
  queue_.pop_front();
  marks_ = step.marks;
  int token = step.token.item<int>();
  if (token == kStopSpeech) {
    stopped_ = true;
    return std::nullopt;
  }
  return token;
}

int SpeechTokens::text_position() {
  return marks_ && request_.analyser ? marks_->data<int>()[ops::kTextPosition]
                                     : -1;
}

int SpeechTokens::stop_forced() {
  return marks_ && request_.analyser ? marks_->data<int>()[ops::kStopForced]
                                     : 0;
}

} // namespace nightingale
