#pragma once

#include <vector>

#include "nightingale/ops/alignment.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/random.h"
#include "nightingale/options.h"

namespace nightingale::ops {

// Below this temperature the most likely token is taken.
constexpr float kArgmaxTemperature = 0.001f;

// When the repetition penalty applies.
enum class SamplingOrder {
  // penalty, temperature, top-k, min-p, top-p; the start of speech counts as
  // seen
  penalty_first,
  // temperature, top-k, min-p, top-p, penalty; the start of speech counts as
  // seen for the first token only
  penalty_last,
};

// How the tokens of one utterance are chosen.
struct TokenRules {
  SpeechOptions options;
  SamplingOrder order = SamplingOrder::penalty_first;
  bool analyser = false;
  AlignmentLimits limits; // first_stop applies without an analyser, too
  int text_tokens = 0; // with start and stop
  int stop_token = 0;
  uint32_t sentence = 0;
};

// The state of one utterance's sampling.
struct Sampler {
  TokenRules rules;
  mx::array packed_rules; // the rules as the kernel reads them
  int position = 0; // tokens chosen
  mx::array token; // [1] int32, the last one
  mx::array seen; // [V] uint8
  AlignmentState alignment;
  // [2] int32, for the host: kTextPosition and kStopForced of the marks. MLX
  // keeps up to 8 bytes in memory that CUDA and the host both access directly.
  mx::array report;

  // Before the first token; `first` counts as seen.
  static Sampler
  start(const TokenRules& rules, int vocabulary, int first, mx::Stream s);

  // An independent copy without the analyser, for a draft model.
  Sampler fork_for_draft(mx::Stream s) const;
};

// The next token, in the order of chatterbox-tts: guidance, the analyser, the
// filters of filter_logits, draw. The result may take over `seen`, which is not
// changed before the result is evaluated.
// logits: [1 or 2, V]; weights: as in AlignmentInput.
Sampler choose_token(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    Sampler sampler,
    mx::Stream s);

// The ops that choose_token is made of where no kernel does it at once.

// Classifier-free guidance: cond + weight * (cond - uncond). logits: [2, V],
// the conditioned row first, or [1, V], returned unchanged → [V] float32
mx::array guide(const mx::array& logits, float weight, mx::Stream s);

// Repetition penalty over the seen tokens, temperature, top-k, min-p, top-p, in
// this order or with the penalty last. logits: [V] float32; seen: [V] uint8 →
// [V], -inf for removed tokens. The most likely token before a last penalty is
// always kept, and at temperature 0 no other.
mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    SamplingOrder order,
    mx::Stream s);

// A draw from softmax(logits) by the Gumbel-max rule: [V] → [1] int32
mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s);

// Makes one token impossible: [V] → [V]
mx::array forbid_token(const mx::array& logits, int token, mx::Stream s);

// Sets seen[token]. The result takes over the buffer.
mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s);

} // namespace nightingale::ops
