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

SpeechRequest checked(SpeechRequest request, const T3Config& config) {
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
  return request;
}

// Text tokens with start and stop.
int framed_length(const SpeechRequest& request) {
  return request.text_tokens.size() + 2;
}

// The analyser judges by the last three text tokens and the first four, which
// in a short text are the same: it would stop in the middle of the only word,
// and a model without an analyser may not find the end at all. So a short text
// is given time to be said, and no more than that.
constexpr int kShortText = 5; // text tokens
constexpr int kShortestSpeech = 5; // speech tokens, 200 ms
constexpr int kPatience = 4; // speech tokens a text token after the end
constexpr int kLongestSpeech[] = {25, 10}; // speech tokens, and a text token

bool is_short(const SpeechRequest& request) {
  return std::ssize(request.text_tokens) <= kShortText;
}

// `request` with the bounds of its text.
SpeechRequest bounded(SpeechRequest request) {
  if (is_short(request)) {
    int text = request.text_tokens.size();
    int longest = kLongestSpeech[0] + kLongestSpeech[1] * text;
    request.min_tokens = std::max(request.min_tokens, kShortestSpeech);
    request.max_tokens =
        std::min(request.max_tokens, std::max(longest, request.min_tokens));
  }
  return request;
}

ops::Sampler sampler_for(const SpeechRequest& request, const T3& model) {
  ops::TokenRules rules{
      .cfg_weight = request.cfg_weight,
      .sampling = request.sampling,
      .analyser = request.analyser,
      .limits = {.first_stop = request.min_tokens},
      .text_tokens = framed_length(request),
      .stop_token = kStopSpeech,
      .seed = request.seed,
      .sentence = request.sentence};
  if (is_short(request)) {
    rules.limits.after_end += kPatience * request.text_tokens.size();
  }
  return ops::Sampler::start(
      rules, model.config().speech_vocabulary, kStartSpeech, model.stream());
}

} // namespace

SpeechTokens::SpeechTokens(
    std::shared_ptr<const T3> model,
    SpeechRequest request)
    : model_(std::move(model)),
      request_(bounded(checked(std::move(request), model_->config()))),
      rows_(request_.cfg_weight > 0.0f ? 2 : 1),
      prompt_(model_->prompt(request_.text_tokens, rows_)),
      text_{request_.voice.length, framed_length(request_), 1, {}},
      cache_(model_->begin(
          request_.voice,
          rows_,
          prompt_->shape(1) + request_.max_tokens)),
      sampler_(sampler_for(request_, *model_)) {}

// Feeds the last token in and gives the logits of what follows: [rows, V].
mx::array SpeechTokens::step_logits(TextAttention* text_attention) {
  auto input = [&] {
    if (!prompt_) {
      return model_->next_speech(sampler_.token, sampler_.position, rows_);
    }
    // The reference gives the start of speech twice: once at the end of the
    // prompt, once as the first token fed in.
    auto start = model_->speech(sampler_.token, sampler_.position, rows_);
    return mx::concatenate({*prompt_, start}, 1, model_->stream());
  };
  auto logits = model_->forward(input(), cache_, 1, text_attention);
  prompt_.reset();
  return mx::reshape(logits, {rows_, -1}, model_->stream());
}

void SpeechTokens::queue_step() {
  TextAttention text_attention = text_;
  text_attention.rows = sampler_.position == 0 ? 2 : 1; // both starts of speech
  auto logits = step_logits(request_.analyser ? &text_attention : nullptr);
  sampler_ = ops::choose_token(
      logits, text_attention.weights, std::move(sampler_), model_->stream());
  mx::async_eval({sampler_.token, sampler_.report});
  queue_.push_back({sampler_.token, sampler_.report});
}

std::optional<int> SpeechTokens::next() {
  size_t ahead = ops::queues_ahead(model_->stream()) ? 2 : 1;
  while (!stopped_ && queue_.size() < ahead &&
         sampler_.position < request_.max_tokens) {
    queue_step();
  }
  if (stopped_ || queue_.empty()) {
    return std::nullopt;
  }
  Step step = queue_.front();
  queue_.pop_front();
  report_ = step.report;
  report_->eval(); // the token may be there before it
  int token = step.token.item<int>();
  if (token == kStopSpeech) {
    stopped_ = true;
    return std::nullopt;
  }
  return token;
}

int SpeechTokens::text_position() {
  return report_ && request_.analyser ? report_->data<int>()[0] : -1;
}

int SpeechTokens::stop_forced() {
  return report_ && request_.analyser ? report_->data<int>()[1] : 0;
}

} // namespace nightingale
