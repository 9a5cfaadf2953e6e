#pragma once

#include "nightingale/ops/streaming_conv.h"

// The vocoder's short-time Fourier transform: frames of 16 samples under a
// periodic Hann window, 4 samples apart; 9 bins.

namespace nightingale::ops {

constexpr int kStftSize = 16;
constexpr int kStftHop = 4;
constexpr int kStftBins = kStftSize / 2 + 1;
constexpr int kStftOverlap = kStftSize / kStftHop; // frames that share a sample

// Whole frames in `samples`.
constexpr int stft_frames(int samples) {
  return samples < kStftSize ? 0 : (samples - kStftSize) / kStftHop + 1;
}

// Whether an array starts, or ends, where the whole signal does.
struct SignalEnds {
  bool first;
  bool last;
};

// Every whole frame of x: [B, n] → [B, stft_frames(n), 18], the bins' real
// parts first, then the imaginary ones. Pads nothing.
mx::array stft(const mx::array& x, mx::Stream s);

// The bins of log-magnitudes and of phases before their sine: magnitude
// min(exp(x[..., : 9]), 100), phase sin(x[..., 9 :]) radians.
// x: [..., 18] → [..., 18] as stft gives them
mx::array polar_spectrum(const mx::array& x, mx::Stream s);

// Overlap-add, 4 samples for each run of four frames, each divided by the sum
// of the squared windows that cover it. At an end of the signal a run of three
// frames counts too. x: [B, N, 18] → [B, 4 * (N - 3 + first + last)]
mx::array istft(const mx::array& x, SignalEnds ends, mx::Stream s);

// stft of frames centred on every fourth sample; the ends of the signal are
// mirrored. x: [1, n, 1], enough for one frame → [1, frames, 18]
StreamOutput centred_stft(const FrameSpan& x, SignalEnds ends, mx::Stream s);

// istft(polar_spectrum(x)), clipped to [-limit, limit]. x: [1, N, 18], enough
// for four samples → [1, samples]
StreamOutput
waveform(const FrameSpan& x, SignalEnds ends, float limit, mx::Stream s);

// The squared magnitudes of the Fourier transform of real frames, in double
// precision: in float32 the rounding of a loud bin hides the quiet ones. GPUs
// have no such type, so it always runs on the CPU.
// frames: [..., n], n even → [..., n / 2 + 1] float32
mx::array power_spectrum(const mx::array& frames, mx::Stream s);

} // namespace nightingale::ops
