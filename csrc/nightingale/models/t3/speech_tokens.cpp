#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace nightingale {

namespace {

std::string bounds_text(const OptionRange& range) {
  auto shown = [](double bound) {
    std::ostringstream text;
    text << bound;
    return text.str();
  };
  if (std::isfinite(range.most)) {
    return "between " + shown(range.least) + " and " + shown(range.most);
  }
  return range.above ? "above " + shown(range.least)
                     : shown(range.least) + " or more";
}

void check_ranges(const SpeechOptions& options) {
  SpeechOptions::each(
      [&](const char* name, auto member, const OptionRange& range) {
        const auto& value = options.*member;
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
          double number = value;
          bool inside = std::isfinite(number) && number <= range.most &&
              (range.above ? number > range.least : number >= range.least);
          require(
              inside,
              std::string(name) + " must be " + bounds_text(range) + ", not " +
                  std::to_string(value));
        }
      });
}

// `request` without what the model does not take.
SpeechRequest without_ignored(SpeechRequest request, const T3Traits& traits) {
  if (!traits.guidance) {
    request.options.cfg_weight = 0.0f;
  }
  if (traits.penalty_last) {
    request.options.min_p = 0.0f;
  }
  return request;
}

SpeechRequest checked(SpeechRequest request, const T3& model) {
  const auto& config = model.config();
  int max_tokens = request.options.max_tokens;
  check_ranges(request.options);
  require(
      max_tokens <= config.speech_positions,
      "max_tokens is " + std::to_string(max_tokens) +
          "; this model has positions for " +
          std::to_string(config.speech_positions));
  require(
      !request.analyser || !config.settings.alignment_heads.empty(),
      "this model names no alignment heads, which the analyser needs");
  model.check_heads(request.watched_heads);
  require(
      !request.analyser || request.watched_heads.empty(),
      "the analyser watches heads of its own: leave watched_heads out");
  require(
      !request.draft || ops::is_batch_invariant(model.stream()),
      "a draft needs the CPU: on a GPU, positions that are checked together "
      "do not have the same bits as one by one, and tokens could change");
  require(
      !request.draft || model.kv().budget == 0.0f,
      "a draft needs a whole KV cache: one with a budget cannot be rewound");
  require(
      !request.proposals ||
          (*request.proposals >= 0 &&
           *request.proposals <= ProposalLength::kMost),
      "proposals must be between 0 and " +
          std::to_string(ProposalLength::kMost) + ", not " +
          std::to_string(request.proposals.value_or(0)));
  return without_ignored(std::move(request), config.traits());
}

// Text tokens with start and stop, where the model takes them.
int framed_length(const SpeechRequest& request, const T3& model) {
  return request.text_tokens.size() + model.config().traits().text_frame;
}

// The analyser judges by the last three text tokens and the first four, which
// in a short text are the same: it would stop in the middle of the only word,
// and a model without an analyser may not find the end at all. So a short text
// is given time to be said, and no more than that.
constexpr int kShortText = 5; // text tokens
constexpr int kShortestSpeech = 5; // speech tokens, 200 ms
constexpr int kPatience = 4; // speech tokens a text token after the end
constexpr int kLongestSpeech[] = {25, 10}; // speech tokens, and a text token

bool is_short(const SpeechRequest& request, const T3& model) {
  return model.config().traits().bounds_short_texts &&
      std::ssize(request.text_tokens) <= kShortText;
}

// `request` with the bounds of its text.
SpeechRequest bounded(SpeechRequest request, const T3& model) {
  if (is_short(request, model)) {
    int text = request.text_tokens.size();
    int longest = kLongestSpeech[0] + kLongestSpeech[1] * text;
    request.min_tokens = std::max(request.min_tokens, kShortestSpeech);
    int& max_tokens = request.options.max_tokens;
    max_tokens = std::min(max_tokens, std::max(longest, request.min_tokens));
  }
  return request;
}

ops::Sampler sampler_for(const SpeechRequest& request, const T3& model) {
  ops::TokenRules rules{
      .options = request.options,
      .order = model.config().traits().penalty_last
          ? ops::SamplingOrder::penalty_last
          : ops::SamplingOrder::penalty_first,
      .analyser = request.analyser,
      .limits = {.first_stop = request.min_tokens},
      .text_tokens = framed_length(request, model),
      .stop_token = kStopSpeech,
      .sentence = request.sentence};
  if (!model.config().settings.stop_at_repeat) {
    rules.limits.first_repeat = std::numeric_limits<int>::max();
  }
  if (is_short(request, model)) {
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
      request_(bounded(checked(std::move(request), *model_), *model_)),
      rows_(request_.rows()),
      prompt_(model_->prompt(request_.text_tokens, request_.voice, rows_)),
      text_{request_.voice.length, framed_length(request_, *model_), 1, {}},
      cache_(model_->begin(
          request_.voice,
          rows_,
          prompt_->shape(1) + request_.options.max_tokens)),
      sampler_(sampler_for(request_, *model_)),
      draft_(request_.draft ? request_.draft(request_) : nullptr),
      shares_passes_(
          !draft_ && model_->kv().budget == 0.0f && model_->shares_steps()),
      proposal_length_(
          request_.proposal_length && !request_.proposals
              ? request_.proposal_length
              : std::make_shared<ProposalLength>(request_.proposals)),
      spoken_{kStartSpeech},
      watched_(request_.watched_heads.size()) {}

// What is put in next: the last token, after the rest of the prompt where that
// was not yet.
mx::array SpeechTokens::step_input() const {
  const auto& inputs = model_->inputs();
  SpeechPlace place{sampler_.position, cache_.length};
  if (!prompt_) {
    return inputs.next_speech(sampler_.token, place, rows_);
  }
  // Where the prompt ends in a start of speech, the reference gives it twice:
  // once there, once as the first token.
  place.past += prompt_->shape(1);
  auto start = inputs.speech(sampler_.token, place, rows_);
  return mx::concatenate({*prompt_, start}, 1, model_->stream());
}

bool SpeechTokens::watches_text() const {
  return request_.analyser || !request_.watched_heads.empty();
}

TextAttention SpeechTokens::watched_text() const {
  TextAttention text = text_;
  if (!request_.analyser) {
    text.heads = &request_.watched_heads;
  } else if (prompt_) {
    text.rows = model_->config().traits().speech_starts;
  }
  return text;
}

// The sampler after the token that follows the last one by its logits: [rows,
// V].
ops::Sampler SpeechTokens::chosen(
    const mx::array& logits,
    const TextAttention& text) const {
  return ops::choose_token(
      logits,
      request_.analyser ? text.weights : std::vector<mx::array>{},
      sampler_,
      model_->stream());
}

// Makes the last token that `sampler` chose the next one; gives what is to be
// evaluated.
std::vector<mx::array> SpeechTokens::queue_token(
    ops::Sampler sampler,
    const TextAttention& text) {
  sampler_ = std::move(sampler);
  queue_.push_back({sampler_.token, sampler_.report});
  std::vector<mx::array> results{sampler_.token, sampler_.report};
  for (size_t i = 0; i < watched_.size(); ++i) {
    watched_[i].push_back(text.weights[i]);
    results.push_back(text.weights[i]);
  }
  return results;
}

void SpeechTokens::take(const mx::array& logits, const TextAttention& text) {
  mx::async_eval(queue_token(chosen(logits, text), text));
}

mx::array SpeechTokens::text_weights() {
  const auto& s = model_->stream();
  mx::Shape end{int(taken_.size()), text_.count};
  std::vector<mx::array> heads;
  for (auto& steps : watched_) {
    if (steps.size() > 1) {
      steps = {mx::concatenate(steps, 0, s)};
    }
    heads.push_back(
        steps.empty() ? mx::zeros(end, mx::float32, s)
                      : mx::slice(steps[0], {0, 0}, end, s));
  }
  auto all = heads.empty() ? mx::zeros({0, end[0], end[1]}, mx::float32, s)
                           : mx::stack(heads, 0, s);
  all.eval();
  return all;
}

// Computes the next part of the prompt: a token where that is the last.
void SpeechTokens::queue_prompt() {
  int left = prompt_->shape(1) + 1; // a token follows it
  int part = model_->prompt_part(left);
  if (part == left) {
    queue_step();
    return;
  }
  const auto& s = model_->stream();
  mx::Shape end = prompt_->shape(), begin{0, part, 0};
  auto rest = mx::slice(*prompt_, begin, end, s);
  end[1] = part;
  auto read =
      model_->read_prompt(mx::slice(*prompt_, {0, 0, 0}, end, s), cache_);
  mx::async_eval({read, rest});
  prompt_ = rest;
}

void SpeechTokens::queue_step() {
  auto text = watched_text();
  auto logits = model_->forward(
      step_input(), cache_, 1, watches_text() ? &text : nullptr);
  prompt_.reset();
  take(mx::reshape(logits, {rows_, -1}, model_->stream()), text);
}

void SpeechTokens::queue_alone() {
  if (prompt_) {
    queue_prompt();
  } else if (draft_) {
    queue_round();
  } else {
    queue_step();
  }
}

bool SpeechTokens::has_ended() const {
  if (stopped_ || sampler_.position >= request_.options.max_tokens) {
    return true;
  }
  bool waits = !ops::queues_ahead(model_->stream());
  return std::ranges::any_of(queue_, [&](const Step& step) {
    return (waits || step.token.is_available()) &&
        mx::array(step.token).item<int>() == kStopSpeech;
  });
}

void SpeechTokens::queue_together(
    const std::vector<std::shared_ptr<SpeechTokens>>& ahead) {
  std::vector<SpeechTokens*> group{this};
  int rows = rows_;
  for (const auto& other : ahead) {
    require(
        other->model_ == model_ && other->shares_passes(),
        "only utterances of one model, without drafts and with whole caches, "
        "are spoken together");
    if (rows + other->rows_ <= ops::kBatchInvariantRows &&
        !other->has_ended()) {
      group.push_back(other.get());
      rows += other->rows_;
    }
  }
  for (const auto& failed : queue_steps(group)) {
    std::rethrow_exception(failed.cause);
  }
}

void SpeechTokens::queue_round() {
  if (spoken_.size() == 1) { // the prompt's token
    spoken_.push_back(sampler_.token.item<int>());
  }
  // The last of a round's tokens must still be within max_tokens.
  int room = request_.options.max_tokens - sampler_.position - 1;
  SpeculationRound round;
  round.asked = std::min(proposal_length_->next(), room);
  std::vector<int> proposals;
  if (round.asked > 0) {
    Stopwatch watch;
    proposals = draft_->propose({spoken_, sampler_, cache_}, round.asked);
    round.draft_seconds = watch.seconds();
  }
  check(proposals, round);
  proposal_length_->learn(round);
  counts_.rounds += !proposals.empty();
  counts_.proposed += round.proposed;
  counts_.accepted += round.accepted;
}

// Feeds the last token and the proposals in, and chooses what follows each of
// them for as long as that is what was proposed. Only tokens that are spoken
// ever touch the sampler; of the rest, the cache is all that has to forget.
void SpeechTokens::check(
    const std::vector<int>& proposals,
    SpeculationRound& round) {
  const auto& s = model_->stream();
  std::vector<int> output{spoken_.back()};
  output.insert(output.end(), proposals.begin(), proposals.end());
  int count = output.size(), past = cache_.length;
  TextAttention text_attention = watched_text();
  text_attention.rows = count;
  Stopwatch pass;
  auto x = model_->inputs().speech(
      mx::array(output.data(), {count}), {sampler_.position, past}, rows_);
  auto logits = model_->forward(
      x, cache_, count, watches_text() ? &text_attention : nullptr);
  mx::eval(logits);
  round.pass_seconds = pass.seconds();
  Stopwatch choices;
  int chosen = 0;
  bool agreed = true;
  while (agreed) {
    auto row = mx::slice(
        logits, {0, chosen, 0}, {rows_, chosen + 1, logits.shape(2)}, s);
    TextAttention one = text_;
    for (const auto& head : text_attention.weights) {
      one.weights.push_back(
          mx::slice(head, {chosen, 0}, {chosen + 1, head.shape(1)}, s));
    }
    int token = choose(mx::reshape(row, {rows_, -1}, s), one);
    agreed = chosen + 1 < count && token == output[chosen + 1] &&
        token != kStopSpeech;
    ++chosen;
  }
  round.choice_seconds = choices.seconds();
  round.proposed = count - 1;
  round.accepted = chosen - 1;
  cache_.trim(past + chosen);
}

// The next token by the sampler, read by the host at once.
int SpeechTokens::choose(const mx::array& logits, const TextAttention& text) {
  take(logits, text);
  spoken_.push_back(sampler_.token.item<int>());
  return spoken_.back();
}

std::optional<int> SpeechTokens::next(
    const std::vector<std::shared_ptr<SpeechTokens>>& ahead) {
  size_t least = ops::queues_ahead(model_->stream()) ? 2 : 1;
  while (!stopped_ && queue_.size() < least &&
         sampler_.position < request_.options.max_tokens) {
    if (ahead.empty() || draft_) {
      queue_alone();
    } else {
      queue_together(ahead);
    }
  }
  return take_queued();
}

std::optional<int> SpeechTokens::take_queued() {
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
  taken_.push_back(token);
  check_finite();
  return token;
}

// The sampler chooses token 0 again and again where T3 computes NaN or
// infinity, so that only the second in a row has it computed once more.
void SpeechTokens::check_finite() const {
  size_t zeros = 0;
  while (zeros < std::min<size_t>(3, taken_.size()) &&
         taken_[taken_.size() - 1 - zeros] == 0) {
    ++zeros;
  }
  if (zeros != 2) {
    return;
  }
  std::vector<int> queries{kStartSpeech}; // those that chose the tokens
  queries.insert(queries.end(), taken_.begin(), taken_.end() - 1);
  auto logits =
      model_->logits(request_.text_tokens, queries, request_.voice, 0);
  const auto& s = model_->stream();
  if (!mx::all(mx::isfinite(logits, s), s).item<bool>()) {
    throw NotFinite("T3 model");
  }
}

} // namespace nightingale
