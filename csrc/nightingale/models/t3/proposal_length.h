#pragma once

#include <array>
#include <optional>

namespace nightingale {

// A round of speculation: a draft proposes, the model checks.
struct SpeculationRound {
  int asked = 0; // of the draft
  int proposed = 0;
  int accepted = 0;
  double draft_seconds = 0.0;
  double pass_seconds = 0.0; // of the model over proposed + 1 positions
  double choice_seconds = 0.0; // of choosing accepted + 1 tokens
};

// How many tokens a draft should propose: as many as make the most tokens a
// second, by how often it was right and how long things took; none where plain
// decoding is faster, which is put to the test again now and then. It may go by
// time because it cannot change a token.
class ProposalLength {
 public:
  // With `fixed` it is always that.
  explicit ProposalLength(std::optional<int> fixed) : fixed_(fixed) {}

  // Rows that check proposals must not be more than are independent: two for
  // each position with guidance.
  static constexpr int kMost = 7;

  int next() const;
  void learn(const SpeculationRound& round);

 private:
  // Over the last measurements, once there are some.
  using Mean = std::optional<double>;

  double pass_seconds(int positions) const;
  double tokens_per_second(int proposals) const;
  int best() const;

  std::optional<int> fixed_;
  double acceptance_ = 0.75; // before anything is known: worth a try
  int tested_ = 0; // proposals that were found right or wrong, up to some
  std::array<Mean, kMost + 2> passes_; // by their positions
  Mean draft_; // seconds a token
  Mean choice_; // seconds a token
  int since_proposals_ = 0; // tokens
};

} // namespace nightingale
