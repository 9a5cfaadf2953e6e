#include <algorithm>
#include <optional>
#include <string>

#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/models/t3/draft.h"
#include "nightingale/models/t3/speech_tokens.h"

namespace nightingale {

namespace {

class ModelDraft : public Draft {
 public:
  ModelDraft(
      std::shared_ptr<const T3> model,
      const KvCache& voice,
      const SpeechRequest& request)
      : model_(std::move(model)),
        rows_(request.rows()),
        prompt_(model_->prompt(request.text_tokens, rows_)),
        begin_(voice.length + prompt_->shape(1)),
        cache_(model_->begin(
            voice,
            rows_,
            prompt_->shape(1) + request.options.max_tokens)) {}

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    keep_common(spoken.tokens);
    auto logits_after = [&](const mx::array& token, int position) {
      if (position >= std::ssize(spoken.tokens)) {
        output_.push_back(token.item<int>());
        return read(model_->next_speech(token, position, rows_));
      }
      return read(missing(spoken.tokens));
    };
    return propose_tokens(
        spoken.sampler, count, logits_after, model_->stream());
  }

 private:
  // Forgets what was output in and not spoken, and at least the last token,
  // whose logits come next.
  void keep_common(const std::vector<int>& spoken) {
    auto differs = std::ranges::mismatch(output_, spoken).in1;
    output_.erase(differs, output_.end());
    output_.resize(std::min(output_.size(), spoken.size() - 1));
    if (!prompt_) {
      cache_.trim(begin_ + output_.size());
    }
  }

  // The positions of spoken tokens that were not output in, after the prompt
  // where that was not either.
  mx::array missing(const std::vector<int>& spoken) {
    int first = output_.size(), count = spoken.size() - first;
    mx::array tokens(spoken.data() + first, {count}, mx::int32);
    auto x = model_->speech(tokens, first, rows_);
    output_ = spoken;
    if (prompt_) {
      x = mx::concatenate({*prompt_, x}, 1, model_->stream());
      prompt_.reset();
    }
    return x;
  }

  mx::array read(const mx::array& x) {
    auto logits = model_->forward(x, cache_, 1, nullptr);
    return mx::reshape(logits, {rows_, -1}, model_->stream());
  }

  std::shared_ptr<const T3> model_;
  int rows_;
  std::optional<mx::array> prompt_; // until it has been output in
  int begin_; // where the speech begins in the cache
  KvCache cache_;
  std::vector<int> output_; // speech tokens in the cache
};

} // namespace

MakeDraft model_draft(std::shared_ptr<const T3> draft, KvCache voice) {
  return [draft = std::move(draft),
          voice = std::move(voice)](const SpeechRequest& request) {
    return std::make_unique<ModelDraft>(draft, voice, request);
  };
}

void check_draft(const T3& model, const T3& draft) {
  const auto &has = draft.config(), &needs = model.config();
  auto require = [](bool fits, const char* what, int seen, int needed) {
    if (!fits) {
      throw Error(
          std::string("the draft has ") + what + " " + std::to_string(seen) +
          ", the model " + std::to_string(needed) +
          ": it must have been made for this model");
    }
  };
  auto same = [&](const char* what, int seen, int needed) {
    require(seen == needed, what, seen, needed);
  };
  auto enough = [&](const char* what, int seen, int needed) {
    require(seen >= needed, what, seen, needed);
  };
  same("a text vocabulary of", has.text_vocabulary, needs.text_vocabulary);
  same(
      "a speech vocabulary of", has.speech_vocabulary, needs.speech_vocabulary);
  same("a speaker embedding of", has.speaker_size, needs.speaker_size);
  enough("text positions:", has.text_positions, needs.text_positions);
  enough("speech positions:", has.speech_positions, needs.speech_positions);
}

} // namespace nightingale
