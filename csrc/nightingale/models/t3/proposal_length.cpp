#include "nightingale/models/t3/proposal_length.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace nightingale {

namespace {

// Proposals that `acceptance_` is a mean over: what it begins with counts as
// some, and those long ago as none.
constexpr int kPresumedProposals = 4;
constexpr int kMostTested = 30;
// Of a plain step, what each further position of a pass is expected to take
// before one has been tried.
constexpr double kPositionShare = 0.1;
constexpr double kTimeWeight = 0.2; // of the last measurement
constexpr double kLeastGain = 1.05; // over plain decoding
constexpr int kPatience = 64; // tokens between tries while none pay

// Tokens that a round gives when each proposal is right by itself with
// probability `acceptance`: those before the first that is not, and one more.
double expected_tokens(double acceptance, int proposals) {
  double tokens = 1.0;
  for (int i = 1; i <= proposals; ++i) {
    tokens += std::pow(acceptance, i);
  }
  return tokens;
}

// Moves a mean of durations towards the last one.
void add(std::optional<double>& mean, double value) {
  mean = mean ? *mean + kTimeWeight * (value - *mean) : value;
}

} // namespace

int ProposalLength::next() const {
  if (fixed_) {
    return *fixed_;
  }
  if (!passes_[1]) {
    return 0; // what a plain step costs
  }
  int length = best();
  return length == 0 && since_proposals_ >= kPatience ? 1 : length;
}

void ProposalLength::learn(const SpeculationRound& round) {
  add(passes_[round.proposed + 1], round.pass_seconds);
  add(choice_, round.choice_seconds / (round.accepted + 1));
  if (round.proposed > 0) {
    add(draft_, round.draft_seconds / round.proposed);
  }
  // Those behind the first that is wrong were not put to the test.
  int tested = std::min(round.accepted + 1, round.proposed);
  for (int i = 0; i < tested; ++i) {
    tested_ = std::min(tested_ + 1, kMostTested);
    double weight = 1.0 / (kPresumedProposals + tested_);
    acceptance_ += weight * ((i < round.accepted ? 1.0 : 0.0) - acceptance_);
  }
  since_proposals_ = round.asked > 0 ? 0 : since_proposals_ + 1;
}

// What a pass takes: no more than any longer one has taken, so that one bad
// measurement does not last. Not tried yet, it is on a line through its
// neighbours, or as much more than the longest as that is more than a plain
// step.
double ProposalLength::pass_seconds(int positions) const {
  auto least = [&](int from) {
    double seconds = *passes_[from];
    for (int i = from; i < std::ssize(passes_); ++i) {
      seconds = std::min(seconds, passes_[i].value_or(seconds));
    }
    return seconds;
  };
  int above = positions, below = positions;
  while (above < std::ssize(passes_) && !passes_[above]) {
    ++above;
  }
  while (!passes_[below]) {
    --below;
  }
  if (above == below) {
    return least(positions);
  }
  double slope = above < std::ssize(passes_)
      ? (least(above) - least(below)) / (above - below)
      : below > 1 ? (least(below) - least(1)) / (below - 1)
                  : kPositionShare * least(1);
  return least(below) + (positions - below) * slope;
}

double ProposalLength::tokens_per_second(int proposals) const {
  double tokens = expected_tokens(acceptance_, proposals);
  double draft = draft_.value_or(0.0);
  return tokens /
      (proposals * draft + pass_seconds(proposals + 1) + tokens * *choice_);
}

int ProposalLength::best() const {
  int best = 0;
  for (int length = 1; length <= kMost; ++length) {
    if (tokens_per_second(length) > tokens_per_second(best)) {
      best = length;
    }
  }
  bool pays = tokens_per_second(best) > kLeastGain * tokens_per_second(0);
  return pays ? best : 0;
}

} // namespace nightingale
