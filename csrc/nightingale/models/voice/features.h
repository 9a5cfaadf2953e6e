#pragma once

#include "nightingale/ops/backend.h"

// What the models of a voice hear of a recording. All take mono samples, [n]
// float32 in [-1, 1].

namespace nightingale {

constexpr int kBakeRate = 16000; // Hz, of all but the prompt's mel
constexpr int kPromptRate = 24000;

// The flow's prompt: natural logarithm of 80 mel magnitudes of 24 kHz sound, 50
// frames a second → [n / 480, 80]
mx::array prompt_mel(const mx::array& samples, mx::Stream s);

// The speech tokenizer's input: decimal logarithm of 128 mel powers, 80 dB deep
// below the loudest, scaled; 100 frames a second → [n / 160, 128]
mx::array tokenizer_mel(const mx::array& samples, mx::Stream s);

// The voice encoder's input: 40 mel powers, 100 frames a second
// → [n / 160 + 1, 40]
mx::array voice_mel(const mx::array& samples, mx::Stream s);

// The speaker encoder's input, as Kaldi makes it: logarithm of 80 mel powers of
// pre-emphasised frames, less each channel's mean; 100 frames a second
// → [(n - 400) / 160 + 1, 80]
mx::array kaldi_fbank(const mx::array& samples, mx::Stream s);

} // namespace nightingale
