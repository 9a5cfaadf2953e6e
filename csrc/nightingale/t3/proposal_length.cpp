#include "nightingale/t3/proposal_length.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace nightingale {

namespace {

constexpr double kAcceptanceWeight = 0.1; // of the last proposal
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

} // namespace

void ProposalLength::Mean::add(double value, double weight) {
  value_ = value_ ? *value_ + weight * (value - *value_) : value;
}

int ProposalLength::next() const {
  if (fixed_) {
    return *fixed_;
  }
  if (!passes_[1].known()) {
    return 0; // what a plain step costs
  }
  int length = best();
  return length == 0 && since_proposals_ >= kPatience ? 1 : length;
}

void ProposalLength::learn(const SpeculationRound& round) {
  passes_[round.proposed + 1].add(round.pass_seconds, kTimeWeight);
  choice_.add(round.choice_seconds / (round.accepted + 1), kTimeWeight);
  if (round.proposed > 0) {
    draft_.add(round.draft_seconds / round.proposed, kTimeWeight);
  }
  for (int i = 0; i < round.accepted; ++i) {
    acceptance_ += kAcceptanceWeight * (1.0 - acceptance_);
  }
  if (round.accepted < round.proposed) {
    acceptance_ -= kAcceptanceWeight * acceptance_;
  }
  since_proposals_ = round.asked > 0 ? 0 : since_proposals_ + 1;
}

// What a pass takes: no more than any longer one has taken, so that one bad
// measurement does not last; not tried yet, as long as the next shorter one, so
// that it is tried.
double ProposalLength::pass_seconds(int positions) const {
  std::optional<double> seconds;
  for (int i = positions; i < std::ssize(passes_); ++i) {
    if (passes_[i].known()) {
      seconds =
          std::min(seconds.value_or(passes_[i].value()), passes_[i].value());
    }
  }
  return seconds ? *seconds : pass_seconds(positions - 1);
}

double ProposalLength::tokens_per_second(int proposals) const {
  double tokens = expected_tokens(acceptance_, proposals);
  double draft = draft_.known() ? draft_.value() : 0.0;
  return tokens /
      (proposals * draft + pass_seconds(proposals + 1) +
       tokens * choice_.value());
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
