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

// The same in two parts, for a recording that is heard part by part: the
// logarithm alone, and its depth below the loudest value of the whole
// recording.
mx::array tokenizer_log_mel(const mx::array& samples, mx::Stream s);
mx::array
scaled_log_mel(const mx::array& log, const mx::array& loudest, mx::Stream s);

// The voice encoder's input: 40 mel powers, 100 frames a second
// → [n / 160 + 1, 40]
mx::array voice_mel(const mx::array& samples, mx::Stream s);

// The speaker encoder's input, as Kaldi makes it: logarithm of 80 mel powers of
// pre-emphasised frames, less each channel's mean; 100 frames a second
// → [(n - 400) / 160 + 1, 80]
mx::array kaldi_fbank(const mx::array& samples, mx::Stream s);

// Mel filters: the weights that triangles evenly spaced on a mel scale give to
// the bins of a spectrum of `size` samples at `rate` Hz.
// → [mels, size / 2 + 1] float32
//
// Slaney's scale, linear below 1 kHz, from 0 to 8 kHz; every triangle's area
// over frequency is 1.
mx::array slaney_filters(int rate, int size, int mels);

// The scale that Kaldi shares with HTK, from 20 Hz to 8 kHz; every triangle is
// 1 high. It is linear over mels, and the last bin counts nowhere.
mx::array kaldi_filters(int rate, int size, int mels);

} // namespace nightingale
