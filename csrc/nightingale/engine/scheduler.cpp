#include "nightingale/engine/scheduler.h"

#include <algorithm>
#include <set>

#include "nightingale/ops/lanes.h"
#include "nightingale/ops/machine.h"

namespace nightingale {

namespace {

template <typename Work>
void join(
    std::vector<std::weak_ptr<Work>>& joined,
    const std::shared_ptr<Work>& work) {
  std::erase_if(joined, [](const auto& each) { return each.expired(); });
  joined.push_back(work);
}

// Sessions beside one, from which on lanes are used where there are many.
constexpr int kMostAwaited = 3;

bool wants_token(const Utterance& utterance) {
  const auto& tokens = utterance.tokens;
  return !utterance.failure && !tokens.in_prompt() && !tokens.has_ended() &&
      tokens.queued() < utterance.wanted;
}

struct Limits {
  size_t most; // of a group
  // Where the first of a group is overdue, others are due before that.
  std::chrono::milliseconds enough;
};

// Fills `group` up with what is computed along with its first: of what has
// joined and is not in it, those that want it and are due first.
template <typename Work, typename Wants>
void add_others(
    std::vector<std::shared_ptr<Work>>& group,
    const std::vector<std::weak_ptr<Work>>& joined,
    Limits limits,
    Wants wants) {
  auto now = Clock::now();
  bool urgent = group.front()->due <= now;
  std::vector<std::shared_ptr<Work>> found;
  for (const auto& each : joined) {
    auto other = each.lock();
    if (other && !other->failure &&
        !(urgent && other->due > now + limits.enough) && wants(*other) &&
        std::ranges::find(group, other) == group.end()) {
      found.push_back(std::move(other));
    }
  }
  std::ranges::stable_sort(
      found, {}, [](const auto& each) { return each->due; });
  size_t room = std::max(limits.most, group.size()) - group.size();
  found.resize(std::min(found.size(), room));
  group.insert(group.end(), found.begin(), found.end());
}

// A step of each solution. Where that fails for several, each that was not
// changed makes it alone.
void step(const std::vector<std::shared_ptr<Solution>>& group) {
  std::vector<MelState*> states;
  std::vector<int> done;
  for (const auto& each : group) {
    states.push_back(&each->state);
    done.push_back(each->state.done);
  }
  try {
    group.front()->flow->step(states);
  } catch (...) {
    for (size_t i = 0; i < group.size(); ++i) {
      if (group.size() > 1 && group[i]->state.done == done[i]) {
        step({group[i]});
      } else {
        group[i]->failure = std::current_exception();
      }
    }
  }
}

} // namespace

void Scheduler::join(const std::shared_ptr<Utterance>& utterance) {
  nightingale::join(utterances_, utterance);
}

bool Scheduler::has_room() const {
  auto expired = [](const auto& each) { return each.expired(); };
  auto running =
      utterances_.size() - std::ranges::count_if(utterances_, expired);
  return running < kUtterances;
}

void Scheduler::join(const std::shared_ptr<Solution>& solution) {
  nightingale::join(solutions_, solution);
}

uint64_t Scheduler::failed_ops() const {
  return ops::failed_ops() - known_failures_;
}

void Scheduler::advance(
    const std::vector<std::shared_ptr<Utterance>>& utterances) {
  auto group = utterances;
  const auto& first = utterances.front()->tokens;
  if (first.shares_passes() && !first.in_prompt()) {
    Limits limits{kUtterances, kEnough};
    add_others(group, utterances_, limits, [&](const Utterance& other) {
      return wants_token(other) && other.tokens.can_share_pass(first);
    });
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

bool Scheduler::advance_others() {
  std::shared_ptr<Utterance> first;
  for (const auto& each : utterances_) {
    auto other = each.lock();
    if (other && wants_token(*other) && (!first || other->due < first->due)) {
      first = std::move(other);
    }
  }
  if (first) {
    advance({first});
  }
  return first != nullptr;
}

bool Scheduler::keeps_lanes_busy(int session, Clock::time_point due) const {
  auto now = Clock::now();
  bool urgent = due <= now && !ops::lanes_work();
  std::set<int> others;
  for (const auto& each : utterances_) {
    auto other = each.lock();
    if (other && other->session != session && !other->failure &&
        !(urgent && other->due > now + kEnoughSound)) {
      others.insert(other->session);
    }
  }
  int enough = std::min(ops::lanes() - 1, kMostAwaited);
  return std::ssize(others) >= enough;
}

void Scheduler::advance(const std::shared_ptr<Solution>& solution) {
  std::vector<std::shared_ptr<Solution>> group{solution};
  const auto& flow = solution->flow;
  if (ops::queues_ahead(flow->stream())) {
    Limits limits{kSolutions, kEnoughSound};
    add_others(group, solutions_, limits, [&](const Solution& other) {
      return other.flow == flow && !other.state.finished();
    });
  }
  step(group);
  ++flow_groups_;
  flow_steps_ += group.size();
}

} // namespace nightingale
