#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/ops/backend.h"

namespace nightingale {

// An utterance whose tokens may be computed along with those of others.
struct Utterance {
  Utterance(std::shared_ptr<const T3> model, SpeechRequest request)
      : shares_passes(
            !request.draft && ops::is_batch_invariant(model->stream())),
        tokens(std::move(model), std::move(request)) {}

  bool shares_passes; // with results that are those it has alone
  SpeechTokens tokens;
  bool waiting = false; // for its next token, with the prompt behind it
  std::exception_ptr failure; // of a pass that another one has asked for
};

// Whose tokens T3 computes in one pass. The weights are read once for all of
// them.
//
// A session that needs its next token asks for it, and every other one that
// waits for its own, of up to kUtterances, gets it in the same pass; it is kept
// until it is asked for, so that a session whose listener does not take its
// sound is one token ahead at most. Tokens are those that a session would have
// alone. A failure ends the session that it belongs to.
class Scheduler {
 public:
  // As many as have batch-invariant rows, two each with guidance.
  static constexpr int kUtterances = 8;

  // Held by a session while it makes a step: sessions of several threads take
  // turns.
  std::mutex& turn() {
    return turn_;
  }

  // The rest is called in a turn.

  void join(const std::shared_ptr<Utterance>& utterance);

  // Computes the next part of the prompt or the next token of the first of
  // `utterances`; those that follow it get their next tokens too, whether they
  // wait for them or not.
  void advance(const std::vector<std::shared_ptr<Utterance>>& utterances);

  // Passes so far, and the tokens or parts of prompts they were for.
  uint64_t passes() const {
    return passes_;
  }
  uint64_t steps() const {
    return steps_;
  }

 private:
  std::vector<std::shared_ptr<Utterance>> waiting(size_t most);

  std::mutex turn_;
  std::vector<std::weak_ptr<Utterance>> joined_; // who waits longest is first
  uint64_t passes_ = 0;
  uint64_t steps_ = 0;
};

} // namespace nightingale
