#pragma once

#include <optional>
#include <vector>

#include "nightingale/models/layers.h"
#include "nightingale/models/t3/config.h"

namespace nightingale {

// What a voice gives to T3.
struct T3Voice {
  std::vector<float> speaker; // [speaker_size]
  std::vector<int> prompt_tokens; // may be empty
  float emotion = 0.5f;
};

// Turns a voice into the positions that stand before the text: the speaker, the
// perceiver's summary of the prompt, the emotion.
class Conditioning {
 public:
  // reader: reads the tensors "cond_enc.*"
  Conditioning(const LayerReader& reader, const T3Config& config);

  // prompt: [1, P, hidden], the embedded prompt tokens, or none
  // → [1, 2 or 2 + perceiver_queries, hidden]
  mx::array encode(
      const T3Voice& voice,
      const std::optional<mx::array>& prompt,
      mx::Stream s) const;

 private:
  // The perceiver's attention block: x attends to y, and keeps itself.
  mx::array attend(const mx::array& x, const mx::array& y, mx::Stream s) const;

  Linear speaker_;
  ops::Matrix emotion_w_; // [hidden, 1]
  mx::array queries_; // [1, perceiver_queries, hidden]
  ops::LayerNorm norm_;
  Linear query_;
  Linear key_value_; // keys first
  Linear out_;
};

} // namespace nightingale
