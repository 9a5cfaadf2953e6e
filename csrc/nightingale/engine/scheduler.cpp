#include "nightingale/engine/scheduler.h"

#include <algorithm>

#include "nightingale/error.h"
#include "nightingale/ops/machine.h"

namespace nightingale {

void Scheduler::join(const std::shared_ptr<Utterance>& utterance) {
  std::erase_if(joined_, [](const auto& each) { return each.expired(); });
  joined_.push_back(utterance);
}

// Utterances that wait for a token; they wait again after all others.
std::vector<std::shared_ptr<Utterance>> Scheduler::waiting(size_t most) {
  std::vector<std::shared_ptr<Utterance>> found;
  std::vector<std::weak_ptr<Utterance>> left, served;
  for (const auto& each : joined_) {
    auto utterance = each.lock();
    if (!utterance) {
      continue;
    }
    bool serve = found.size() < most && utterance->waiting &&
        !utterance->failure && utterance->tokens.queued() == 0;
    (serve ? served : left).push_back(each);
    if (serve) {
      found.push_back(utterance);
    }
  }
  joined_ = std::move(left);
  joined_.insert(joined_.end(), served.begin(), served.end());
  return found;
}

void Scheduler::advance(
    const std::vector<std::shared_ptr<Utterance>>& utterances) {
  auto group = utterances;
  const auto& first = utterances.front();
  first->waiting = false; // it is in the group
  if (first->shares_passes && !first->tokens.in_prompt() &&
      group.size() < kUtterances) {
    auto others = waiting(kUtterances - group.size());
    group.insert(group.end(), others.begin(), others.end());
  }
  std::vector<SpeechTokens*> tokens;
  for (const auto& each : group) {
    tokens.push_back(&each->tokens);
  }
  auto failed_before = ops::failed_ops();
  auto failed = queue_steps(tokens);
  ++passes_;
  steps_ += group.size();
  for (const auto& step : failed) {
    auto owner = std::ranges::find_if(group, [&](const auto& each) {
      return &each->tokens == step.utterance;
    });
    (*owner)->failure = step.cause;
  }
  if (group.size() > 1) {
    // An op that fails gives zeros and is counted. It is not known whose it
    // was, so that all who were in the pass end.
    for (const auto& each : group) {
      each->tokens.has_ended(); // waits for its token
    }
    if (ops::failed_ops() != failed_before) {
      auto cause = std::make_exception_ptr(Error(ops::last_failure()));
      for (const auto& each : group) {
        each->failure = cause;
      }
    }
  }
}

} // namespace nightingale
