#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// The llama3 way of stretching rotary frequencies to longer contexts.
struct RotaryScaling {
  float theta = 500000.0f;
  float factor = 8.0f;
  float low_frequency_factor = 1.0f;
  float high_frequency_factor = 4.0f;
  float original_positions = 8192.0f;
};

// Radians per position of each pair of channels: [head_dim / 2] float32.
mx::array rotary_frequencies(int head_dim, const RotaryScaling& scaling);

// Turns channel pairs (i, i + head_dim / 2) of every head by position times
// frequency. x: [B, T, heads * head_dim], row t at position past + t;
// frequencies: [head_dim / 2].
mx::array rotary(
    const mx::array& x,
    const mx::array& frequencies,
    int past,
    mx::Stream s);

} // namespace nightingale::ops
