#pragma once

#include <vector>

#include "nightingale/models/t3/t3.h"

namespace nightingale {

// Where in the text each of the speech tokens is spoken if the model is made to
// say just these: indices into the text tokens with start and stop, as
// SpeechTokens::text_position has them. Neither text nor speech has its start
// and stop. voice: what T3::condition gave.
std::vector<int> text_positions(
    const T3& model,
    const std::vector<int>& text_tokens,
    const std::vector<int>& speech_tokens,
    const KvCache& voice);

} // namespace nightingale
