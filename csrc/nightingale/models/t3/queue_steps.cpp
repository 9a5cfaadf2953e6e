// Steps of several utterances.

#include <algorithm>

#include "mlx/transforms.h"
#include "nightingale/models/t3/speech_tokens.h"

namespace nightingale {

// One token of each of several utterances of one model, in one pass.
class SharedPass {
 public:
  explicit SharedPass(std::shared_ptr<const T3> model)
      : model_(std::move(model)) {}

  bool takes(const SpeechTokens& utterance) const {
    return utterance.model_ == model_ &&
        rows_ + utterance.rows_ <= ops::kBatchInvariantRows;
  }

  void add(SpeechTokens* utterance) {
    group_.push_back(utterance);
    rows_ += utterance->rows_;
  }

  // Builds everything and changes no utterance.
  void build() {
    std::vector<mx::array> inputs;
    for (const auto* each : group_) {
      inputs.push_back(each->step_input());
      caches_.push_back(each->cache_);
      texts_.push_back(each->watched_text());
    }
    std::vector<KvCache*> caches;
    std::vector<TextAttention*> watched;
    for (size_t i = 0; i < group_.size(); ++i) {
      caches.push_back(&caches_[i]);
      watched.push_back(group_[i]->watches_text() ? &texts_[i] : nullptr);
    }
    auto logits = model_->forward_together(inputs, caches, watched);
    for (size_t i = 0; i < group_.size(); ++i) {
      samplers_.push_back(group_[i]->chosen(logits[i], texts_[i]));
    }
  }

  void queue() {
    std::vector<mx::array> all;
    for (size_t i = 0; i < group_.size(); ++i) {
      auto* each = group_[i];
      each->cache_ = std::move(caches_[i]);
      auto results = each->queue_token(std::move(samplers_[i]), texts_[i]);
      all.insert(all.end(), results.begin(), results.end());
    }
    mx::async_eval(std::move(all));
  }

  const std::vector<SpeechTokens*>& group() const {
    return group_;
  }

 private:
  std::shared_ptr<const T3> model_;
  std::vector<SpeechTokens*> group_;
  int rows_ = 0;
  // What the utterances become.
  std::vector<KvCache> caches_;
  std::vector<TextAttention> texts_;
  std::vector<ops::Sampler> samplers_;
};

std::vector<FailedStep> queue_steps(std::span<SpeechTokens* const> utterances) {
  std::vector<FailedStep> failed;
  auto queue_alone = [&](SpeechTokens* utterance) {
    try {
      utterance->queue_alone();
    } catch (...) {
      failed.push_back({utterance, std::current_exception()});
    }
  };
  std::vector<SharedPass> passes;
  std::vector<SpeechTokens*> alone;
  for (auto* utterance : utterances) {
    if (utterance->has_ended()) {
      continue;
    }
    if (!utterance->goes_together()) {
      alone.push_back(utterance);
      continue;
    }
    auto pass = std::ranges::find_if(
        passes, [&](const SharedPass& each) { return each.takes(*utterance); });
    if (pass == passes.end()) {
      pass = passes.emplace(passes.end(), utterance->model_);
    }
    pass->add(utterance);
  }
  for (auto& pass : passes) {
    bool built = pass.group().size() > 1;
    try {
      if (built) {
        pass.build();
      }
    } catch (...) {
      built = false; // each alone: that tells which one it was
    }
    if (built) {
      pass.queue();
    } else {
      std::ranges::for_each(pass.group(), queue_alone);
    }
  }
  std::ranges::for_each(alone, queue_alone);
  return failed;
}

} // namespace nightingale
