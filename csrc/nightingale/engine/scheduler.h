#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "nightingale/models/s3gen/flow.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/ops/decoder.h"
#include "nightingale/ops/shared_frames.h"

namespace nightingale {

using Clock = std::chrono::steady_clock;

// An utterance whose tokens may be computed along with those of others.
struct Utterance {
  Utterance(std::shared_ptr<const T3> model, SpeechRequest request)
      : tokens(std::move(model), std::move(request)) {}

  SpeechTokens tokens;
  size_t wanted = 0; // tokens that others may have computed before it asks
  Clock::time_point due; // when its listener will have heard all that was made
  std::exception_ptr failure; // of a pass that another one has asked for
  int session = 0; // to which it belongs
};

// A solution of the flow whose steps may be computed along with those of
// others.
struct Solution {
  std::shared_ptr<const Flow> flow;
  MelState state;
  Clock::time_point due = {}; // as of an utterance
  std::exception_ptr failure = nullptr; // of a step
};

// Whose tokens T3 computes in one pass, and whose solutions make a step of the
// flow together.
//
// A session that needs its next token asks for it. Other ones that want tokens,
// of up to kUtterances, get theirs in the same pass, those first whose
// listeners run out of sound first. They are kept until they are asked for:
// what the session wants of them is bounded by its next chunk. One whose
// listener has sound for longer than kEnough waits while another's has none,
// and so does one that cannot share a pass with it. Tokens are those that a
// session would have alone. A failure ends the session that it belongs to.
//
// The same holds for steps of the flow, of up to kSolutions, where a GPU
// computes them: one solution leaves most of it idle. More solutions prolong a
// step by more than more utterances prolong a pass, so kEnoughSound is shorter.
// A session whose solution others have finished goes on with its sound.
//
// On a CPU, sounds of several sessions are made in lanes beside the passes.
class Scheduler {
 public:
  // As many as have batch-invariant rows, two each with guidance.
  static constexpr int kUtterances = ops::kSharedSequences;
  static constexpr int kSolutions = ops::kSharedSolutions;
  static constexpr std::chrono::milliseconds kEnough{2000};
  static constexpr std::chrono::milliseconds kEnoughSound{500};

  // Held by a session while it makes a step: sessions of several threads take
  // turns.
  std::mutex& turn() {
    return turn_;
  }

  // The rest is called in a turn.

  void join(const std::shared_ptr<Utterance>& utterance);

  // Whether a pass has room for more utterances than those that have joined.
  bool has_room() const;

  void join(const std::shared_ptr<Solution>& solution);

  // Computes the next part of the prompt or the next token of the first of
  // `utterances`; those that follow it get their next tokens too, whether they
  // want them or not.
  void advance(const std::vector<std::shared_ptr<Utterance>>& utterances);

  // A pass for utterances that want one; false where none does.
  bool advance_others();

  // Whether enough other sessions have something to compute while a lane makes
  // a chunk of one that is due then, and their listeners wait as hers does.
  bool keeps_lanes_busy(int session, Clock::time_point due) const;

  void count_chunk_aside() {
    ++chunks_aside_;
  }

  // Chunks of sounds that were given to lanes so far.
  uint64_t chunks_aside() const {
    return chunks_aside_;
  }

  // A number for a session.
  int new_session() {
    return sessions_++;
  }

  // Computes the next step of a solution. Its failure is kept in it.
  void advance(const std::shared_ptr<Solution>& solution);

  // Ops that have failed and whose failure is not that of a shared pass, which
  // is known to whom it concerns. A session that sees more of them at the end
  // of its step has failed.
  uint64_t failed_ops() const;

  // Passes so far, and the tokens or parts of prompts they were for.
  uint64_t passes() const {
    return passes_;
  }
  uint64_t steps() const {
    return steps_;
  }

  // Groups of solutions that made a step so far, and the steps they made.
  uint64_t flow_groups() const {
    return flow_groups_;
  }
  uint64_t flow_steps() const {
    return flow_steps_;
  }

 private:
  std::mutex turn_;
  std::atomic<int> sessions_ = 0; // so far
  std::vector<std::weak_ptr<Utterance>> utterances_;
  std::vector<std::weak_ptr<Solution>> solutions_;
  uint64_t known_failures_ = 0;
  uint64_t passes_ = 0;
  uint64_t steps_ = 0;
  uint64_t flow_groups_ = 0;
  uint64_t flow_steps_ = 0;
  uint64_t chunks_aside_ = 0;
};

} // namespace nightingale
