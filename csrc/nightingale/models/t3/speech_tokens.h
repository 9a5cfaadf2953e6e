#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nightingale/models/t3/draft.h"
#include "nightingale/models/t3/proposal_length.h"
#include "nightingale/models/t3/t3.h"
#include "nightingale/ops/sampling.h"

namespace nightingale {

struct SpeechRequest {
  std::vector<int> text_tokens; // without start and stop
  KvCache voice; // T3::condition of a voice
  SpeechOptions options; // cfg_weight 0: one row, no guidance
  bool analyser = false;
  uint32_t sentence = 0; // which sentence of a longer text: part of the draws
  // The stop token is not drawn before min_tokens. Texts of five tokens and
  // fewer have bounds of their own within this one and options.max_tokens: see
  // speech_tokens.cpp.
  int min_tokens = 0;
  // What proposes tokens that the model then checks several at a time; on the
  // CPU only. It changes no token.
  MakeDraft draft = nullptr;
  std::optional<int> proposals = std::nullopt; // none: as many as pay
  // What earlier utterances taught about the draft; none: it is learnt anew.
  std::shared_ptr<ProposalLength> proposal_length = nullptr;
  // Heads whose attention to the text is kept: see SpeechTokens::text_weights.
  // Without an analyser, which watches heads of its own.
  std::vector<AlignmentHead> watched_heads = {};

  // Guidance takes a second row without the text.
  int rows() const {
    return options.cfg_weight > 0.0f ? 2 : 1;
  }
};

// What a draft has brought.
struct SpeculationCounts {
  int rounds = 0; // with proposals
  int proposed = 0;
  int accepted = 0;
};

class SpeechTokens;

// An utterance whose step could not be queued, and why.
struct FailedStep {
  SpeechTokens* utterance;
  std::exception_ptr cause;
};

// Queues one step of each utterance that has not ended: a part of its prompt, a
// token, or a round of its draft. Tokens of one model are computed in passes of
// several utterances where each then says what it says alone
// (T3::shares_steps). Gives those that failed, which are to be dropped; every
// other one has made its step. What concerns none of them, as a device that
// fails, is thrown.
//
// On the CPU a shared pass is waited for. Where an op of it fails, it is not
// known whose it was: each utterance computes its token again, alone, and only
// one that fails there has failed. known_failures: counts the failed ops of
// such passes up, which are nobody else's.
std::vector<FailedStep> queue_steps(
    std::span<SpeechTokens* const> utterances,
    uint64_t* known_failures = nullptr);

// Speaks one request token by token; nothing is computed before it is asked
// for, so that dropping the object is all that cancelling takes.
class SpeechTokens {
 public:
  SpeechTokens(std::shared_ptr<const T3> model, SpeechRequest request);

  // The next speech token, or none after the stop token or max_tokens.
  std::optional<int> next() {
    return next({});
  }

  // The same. Where it has to be computed, so are the next tokens of `ahead`,
  // in one pass that reads the weights once; they are kept until they are asked
  // for. All of one model, of them as many as a pass takes.
  std::optional<int> next(
      const std::vector<std::shared_ptr<SpeechTokens>>& ahead);

  // The next token of those that are queued; none where none is, or where it
  // is the stop token. Throws NotFinite where T3 computes NaN or infinity.
  std::optional<int> take_queued();

  // Tokens that are queued and have not been asked for.
  size_t queued() const {
    return queue_.size();
  }

  // Whether the prompt has not been computed to its end.
  bool in_prompt() const {
    return prompt_.has_value();
  }

  // Whether no more tokens are to be queued. On the CPU that waits for the last
  // one; on a GPU it is what is known without waiting, so that a stop token may
  // be followed by steps whose tokens nobody asks for.
  bool has_ended() const;

  // Whether others' tokens may be computed in one pass with its own, each as it
  // is alone.
  bool shares_passes() const {
    return shares_passes_;
  }

  // Whether this is so of these two: on a GPU both make the same launches.
  bool can_share_pass(const SpeechTokens& other) const;

  // Where in the text the last token was spoken: an index into the text tokens
  // with start and stop; -1 before the first token or without an analyser.
  int text_position() {
    return report_ && request_.analyser ? report_->data<int>()[0] : -1;
  }

  // What the watched heads, in the order of their layers, gave to the text with
  // start and stop when each token that was asked for so far was chosen:
  // [heads, tokens, text] float32, evaluated.
  mx::array text_weights();

  // The positions attended to so far.
  const KvCache& cache() const {
    return cache_;
  }

  // What the analyser did in the last step: a sum of ops::AlignmentFault.
  int stop_forced() {
    return report_ && request_.analyser ? report_->data<int>()[1] : 0;
  }

  const SpeculationCounts& speculation() const {
    return counts_;
  }

 private:
  friend std::vector<FailedStep> queue_steps(
      std::span<SpeechTokens* const> utterances,
      uint64_t* known_failures);
  friend class SharedPass;

  void queue_alone();
  void queue_prompt();
  void queue_step();
  void queue_together(const std::vector<std::shared_ptr<SpeechTokens>>& ahead);
  bool watches_text() const;
  TextAttention watched_text() const;
  mx::array step_input() const;
  ops::Sampler chosen(const mx::array& logits, const TextAttention& text) const;
  std::vector<mx::array> queue_token(
      ops::Sampler sampler,
      const TextAttention& text);
  void take(const mx::array& logits, const TextAttention& text);
  void queue_round();
  void check(const std::vector<int>& proposals, SpeculationRound& round);
  int choose(const mx::array& logits, const TextAttention& text);
  void check_finite() const;

  std::shared_ptr<const T3> model_;
  SpeechRequest request_;
  int rows_;
  std::optional<mx::array> prompt_; // what of it has not been computed
  TextAttention text_; // where the text stands
  KvCache cache_;
  ops::Sampler sampler_;

  std::unique_ptr<Draft> draft_; // may be null
  bool shares_passes_;
  std::shared_ptr<ProposalLength> proposal_length_;
  std::vector<int> spoken_; // for the draft: the start of speech, and tokens
  SpeculationCounts counts_;

  // Steps that run but whose token the host has not read.
  struct Step {
    mx::array token;
    mx::array report; // as ops::Sampler has it
  };
  std::deque<Step> queue_;
  std::optional<mx::array> report_; // of the last token that was read
  std::vector<int> taken_; // tokens that were asked for
  // Of each watched head: [n, text] of steps one after the other.
  std::vector<std::vector<mx::array>> watched_;
  bool stopped_ = false;
};

} // namespace nightingale
