// Steps of several utterances.

#include <algorithm>

#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/ops/machine.h"

namespace nightingale {

// One token of each of several utterances of one model, in one pass.
class SharedPass {
 public:
  explicit SharedPass(SpeechTokens* utterance) : model_(utterance->model_) {
    add(utterance);
  }

  bool takes(const SpeechTokens& utterance) const {
    return rows_ + utterance.rows_ <= ops::kBatchInvariantRows &&
        std::ssize(group_) < ops::kSharedSequences &&
        utterance.can_share_pass(*group_.front());
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

  void compute() {
    std::vector<mx::array> all;
    for (size_t i = 0; i < group_.size(); ++i) {
      auto* each = group_[i];
      std::swap(each->cache_, caches_[i]);
      before_.push_back(std::move(each->sampler_));
      auto results = each->queue_token(std::move(samplers_[i]), texts_[i]);
      all.insert(all.end(), results.begin(), results.end());
    }
    if (ops::queues_ahead(model_->stream())) {
      mx::async_eval(std::move(all));
    } else {
      mx::eval(std::move(all));
    }
  }

  // Makes the utterances what they were. Of their state, only the last position
  // of the caches was written to, and it will be again.
  void undo() {
    for (size_t i = 0; i < group_.size(); ++i) {
      auto* each = group_[i];
      each->cache_ = std::move(caches_[i]);
      each->sampler_ = std::move(before_[i]);
      each->queue_.pop_back();
      for (auto& steps : each->watched_) {
        steps.pop_back();
      }
    }
  }

  const std::vector<SpeechTokens*>& group() const {
    return group_;
  }

 private:
  std::shared_ptr<const T3> model_;
  std::vector<SpeechTokens*> group_;
  int rows_ = 0;
  // What the utterances become; after that, what they were.
  std::vector<KvCache> caches_;
  std::vector<ops::Sampler> before_;
  std::vector<TextAttention> texts_;
  std::vector<ops::Sampler> samplers_;
};

bool SpeechTokens::can_share_pass(const SpeechTokens& other) const {
  bool alike = rows_ == other.rows_ &&
      request_.analyser == other.request_.analyser &&
      request_.watched_heads == other.request_.watched_heads;
  return shares_passes_ && other.shares_passes_ && model_ == other.model_ &&
      (alike || ops::on_cpu(model_->stream()));
}

namespace {

// Whether the pass has given every utterance its token.
bool computes(SharedPass& pass, uint64_t& known_failures) {
  if (pass.group().size() < 2) {
    return false;
  }
  try {
    pass.build();
  } catch (...) {
    return false;
  }
  auto before = ops::failed_ops();
  try {
    pass.compute();
  } catch (...) {
    pass.undo();
    return false;
  }
  auto failures = ops::failed_ops() - before;
  if (failures > 0) {
    known_failures += failures;
    pass.undo();
  }
  return failures == 0;
}

} // namespace

std::vector<FailedStep> queue_steps(
    std::span<SpeechTokens* const> utterances,
    uint64_t* known_failures) {
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
    if (utterance->in_prompt() || !utterance->shares_passes()) {
      alone.push_back(utterance);
      continue;
    }
    auto pass = std::ranges::find_if(
        passes, [&](const SharedPass& each) { return each.takes(*utterance); });
    if (pass == passes.end()) {
      passes.emplace_back(utterance);
    } else {
      pass->add(utterance);
    }
  }
  uint64_t failures = 0;
  for (auto& pass : passes) {
    if (computes(pass, failures)) {
      continue;
    }
    for (auto* utterance : pass.group()) {
      auto before = ops::failed_ops();
      queue_alone(utterance);
      if (pass.group().size() < 2) {
        continue;
      }
      utterance->has_ended(); // waits for its token
      if (ops::failed_ops() != before) {
        failures += ops::failed_ops() - before;
        failed.push_back(
            {utterance, std::make_exception_ptr(Error(ops::last_failure()))});
      }
    }
  }
  std::ranges::for_each(alone, queue_alone);
  if (known_failures) {
    *known_failures += failures;
  }
  return failed;
}

} // namespace nightingale
