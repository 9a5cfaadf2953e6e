#include "nightingale/engine/scheduler.h"

#include <algorithm>

#include "nightingale/ops/machine.h"

namespace nightingale {

void Scheduler::join(const std::shared_ptr<Utterance>& utterance) {
  std::erase_if(joined_, [](const auto& each) { return each.expired(); });
  joined_.push_back(utterance);
}

uint64_t Scheduler::failed_ops() const {
  return ops::failed_ops() - known_failures_;
}

// Those that get tokens along with the first of `group`, and are not in it.
std::vector<std::shared_ptr<Utterance>> Scheduler::others(
    const std::vector<std::shared_ptr<Utterance>>& group) {
  auto now = Clock::now();
  bool urgent = group.front()->due <= now;
  std::vector<std::shared_ptr<Utterance>> found;
  for (const auto& each : joined_) {
    auto other = each.lock();
    if (!other || other->failure || other->tokens.in_prompt() ||
        other->tokens.queued() >= other->wanted ||
        (urgent && other->due > now + kEnough) ||
        !other->tokens.shares_passes() || other->tokens.has_ended() ||
        std::ranges::find(group, other) != group.end()) {
      continue;
    }
    found.push_back(std::move(other));
  }
  std::ranges::stable_sort(
      found, {}, [](const auto& each) { return each->due; });
  size_t most = std::max<size_t>(kUtterances, group.size()) - group.size();
  found.resize(std::min(found.size(), most));
  return found;
}

void Scheduler::advance(
    const std::vector<std::shared_ptr<Utterance>>& utterances) {
  auto group = utterances;
  const auto& first = utterances.front()->tokens;
  if (first.shares_passes() && !first.in_prompt()) {
    auto more = others(group);
    group.insert(group.end(), more.begin(), more.end());
  }
  std::vector<SpeechTokens*> tokens;
  for (const auto& each : group) {
    tokens.push_back(&each->tokens);
  }
  auto failed = queue_steps(tokens, &known_failures_);
  ++passes_;
  steps_ += group.size();
  for (const auto& step : failed) {
    auto owner = std::ranges::find_if(group, [&](const auto& each) {
      return &each->tokens == step.utterance;
    });
    (*owner)->failure = step.cause;
  }
}

} // namespace nightingale
