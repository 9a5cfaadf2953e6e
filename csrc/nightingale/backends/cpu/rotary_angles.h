#pragma once

#include <cmath>

namespace nightingale::cpu {

// Cosine and sine of one position's angle for each of `half` frequencies. In
// float32, as the reference turns its positions.
inline void rotary_angles(
    const float* frequencies,
    int half,
    int position,
    float* cosine,
    float* sine) {
  for (int i = 0; i < half; ++i) {
    float angle = static_cast<float>(position) * frequencies[i];
    cosine[i] = std::cos(angle);
    sine[i] = std::sin(angle);
  }
}

// One head's channels x, turned into y.
inline void rotate_head(
    const float* x,
    const float* cosine,
    const float* sine,
    int half,
    float* y) {
  for (int i = 0; i < half; ++i) {
    float first = x[i], second = x[half + i];
    y[i] = first * cosine[i] - second * sine[i];
    y[half + i] = second * cosine[i] + first * sine[i];
  }
}

} // namespace nightingale::cpu
