#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nightingale/models/t3/t3.h"
#include "nightingale/ops/sampling.h"

namespace nightingale {

struct SpeechRequest;

// What a draft may look at.
struct SpokenSoFar {
  const std::vector<int>& tokens; // the start of speech first
  const ops::Sampler& sampler; // that will choose the next
  KvCache& cache; // the model's, before the last of the tokens
};

// Guesses the tokens of one utterance before the model has chosen them. A bad
// guess costs time and changes nothing.
class Draft {
 public:
  virtual ~Draft() = default;

  // What may follow, `count` tokens at most, fewer where it has no opinion.
  // The cache is left as long as it was; what stands behind that is free.
  virtual std::vector<int> propose(const SpokenSoFar& spoken, int count) = 0;
};

// Begins a draft for each utterance; empty: none.
using MakeDraft =
    std::function<std::unique_ptr<Draft>(const SpeechRequest& request)>;

// What followed the last few tokens when they were last heard, in the utterance
// or before it in the voice's prompt.
MakeDraft ngram_draft(std::vector<int> prompt_tokens);

// The model without some of its layers. It reads the model's own cache, which
// for the layers it keeps is that of the whole model up to the last token.
MakeDraft layer_draft(std::shared_ptr<const T3> model, std::vector<int> kept);

// The layers that a draft of `layers` keeps: the first and the last two, and
// every other one between.
std::vector<int> draft_layers(int layers);

// Another, smaller model, which check_draft accepts; voice: its condition().
MakeDraft model_draft(std::shared_ptr<const T3> draft, KvCache voice);

// An Error where the tokens of one model are not those of the other.
void check_draft(const T3& model, const T3& draft);

// Chooses up to `count` tokens as `sampler` would by the logits of a draft, but
// for the analyser: `logits_after(token, position)` is asked after each of
// them. It ends before a stop token.
std::vector<int> propose_tokens(
    const ops::Sampler& sampler,
    int count,
    const std::function<mx::array(const mx::array& token, int position)>&
        logits_after,
    mx::Stream s);

} // namespace nightingale
