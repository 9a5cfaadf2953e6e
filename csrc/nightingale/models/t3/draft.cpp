#include "nightingale/models/t3/draft.h"

#include <algorithm>
#include <optional>
#include <string>

#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/models/t3/speech_tokens.h"

namespace nightingale {

std::vector<int> propose_tokens(
    const ops::Sampler& sampler,
    int count,
    const std::function<mx::array(const mx::array& token, int position)>&
        logits_after,
    mx::Stream s) {
  auto fork = sampler.fork_for_draft(s);
  std::vector<int> tokens;
  while (static_cast<int>(tokens.size()) < count) {
    auto logits = logits_after(fork.token, fork.position);
    fork = ops::choose_token(logits, {}, std::move(fork), s);
    int token = fork.token.item<int>();
    if (token == sampler.rules.stop_token) {
      break;
    }
    tokens.push_back(token);
  }
  return tokens;
}

namespace {

// Runs of this many tokens are looked for, the longest first.
constexpr int kLongestRun = 4;
constexpr int kShortestRun = 2;

class NgramDraft : public Draft {
 public:
  explicit NgramDraft(std::vector<int> prompt) : history_(std::move(prompt)) {
    prompt_size_ = history_.size();
  }

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    history_.insert(
        history_.end(),
        spoken.tokens.begin() + (history_.size() - prompt_size_),
        spoken.tokens.end());
    int size = history_.size(), after = size;
    for (int run = kLongestRun; run >= kShortestRun && after == size; --run) {
      after = after_run(run);
    }
    auto first = history_.begin() + after;
    return {first, first + std::min(count, size - after)};
  }

 private:
  // Where the previous occurrence of the last `run` tokens ended; the end if
  // there is none.
  int after_run(int run) const {
    int size = history_.size();
    auto pattern = history_.end() - std::min(run, size);
    for (int end = size - 1; end >= run; --end) {
      if (std::equal(pattern, history_.end(), history_.begin() + end - run)) {
        return end;
      }
    }
    return size;
  }

  std::vector<int> history_; // the prompt, then what was spoken
  size_t prompt_size_;
};

} // namespace

MakeDraft ngram_draft(std::vector<int> prompt_tokens) {
  return [prompt = std::move(prompt_tokens)](const SpeechRequest&) {
    return std::make_unique<NgramDraft>(prompt);
  };
}

namespace {

constexpr int kWholeEnds = 2; // layers kept at either end

class LayerDraft : public Draft {
 public:
  LayerDraft(std::shared_ptr<const T3> model, std::vector<int> kept, int rows)
      : model_(std::move(model)), kept_(std::move(kept)), rows_(rows) {}

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    int length = spoken.cache.length;
    auto logits_after = [&](const mx::array& token, int position) {
      SpeechPlace place{position, spoken.cache.length};
      auto x = model_->inputs().next_speech(token, place, rows_);
      auto logits = model_->forward_layers(x, spoken.cache, kept_);
      return mx::reshape(logits, {rows_, -1}, model_->stream());
    };
    auto tokens =
        propose_tokens(spoken.sampler, count, logits_after, model_->stream());
    spoken.cache.trim(length);
    return tokens;
  }

 private:
  std::shared_ptr<const T3> model_;
  std::vector<int> kept_;
  int rows_;
};

} // namespace

MakeDraft layer_draft(std::shared_ptr<const T3> model, std::vector<int> kept) {
  int layers = model->config().layers;
  for (int layer : kept) {
    if (layer < 0 || layer >= layers) {
      throw std::invalid_argument(
          "a draft cannot keep layer " + std::to_string(layer) +
          "; this model has layers 0 to " + std::to_string(layers - 1));
    }
  }
  std::ranges::sort(kept);
  require(
      !kept.empty() && std::ranges::adjacent_find(kept) == kept.end(),
      "a draft must keep one layer at least, and none twice");
  return [model = std::move(model),
          kept = std::move(kept)](const SpeechRequest& request) {
    return std::make_unique<LayerDraft>(model, kept, request.rows());
  };
}

std::vector<int> draft_layers(int layers) {
  std::vector<int> kept;
  for (int i = 0; i < layers; ++i) {
    if (i < kWholeEnds || i >= layers - kWholeEnds || i % 2 == 0) {
      kept.push_back(i);
    }
  }
  return kept;
}

namespace {

class ModelDraft : public Draft {
 public:
  ModelDraft(
      std::shared_ptr<const T3> model,
      const KvCache& voice,
      const SpeechRequest& request)
      : model_(std::move(model)),
        rows_(request.rows()),
        prompt_(model_->prompt(request.text_tokens, voice, rows_)),
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
        SpeechPlace place{position, cache_.length};
        return read(model_->inputs().next_speech(token, place, rows_));
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
    SpeechPlace place{first, begin_ + first};
    auto x = model_->inputs().speech(tokens, place, rows_);
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
  if (has.backbone != needs.backbone) {
    throw Error(
        std::string("the draft has a backbone of the kind ") +
        has.traits().name + ", the model " + needs.traits().name +
        ": it must have been made for this model");
  }
  same("a text vocabulary of", has.text_vocabulary, needs.text_vocabulary);
  same(
      "a speech vocabulary of", has.speech_vocabulary, needs.speech_vocabulary);
  same("a speaker embedding of", has.speaker_size, needs.speaker_size);
  enough("text positions:", has.text_positions, needs.text_positions);
  enough("speech positions:", has.speech_positions, needs.speech_positions);
}

} // namespace nightingale
