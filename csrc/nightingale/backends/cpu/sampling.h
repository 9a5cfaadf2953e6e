#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "nightingale/ops/sampling.h"

// What the sampling ops do to the logits of a vocabulary: `count` floats each.

namespace nightingale::cpu {

// The logit of a token that cannot be drawn.
constexpr float kRemoved = -std::numeric_limits<float>::infinity();

// logits: [rows, count], one row or two
void guide_rows(
    const float* logits,
    int rows,
    int count,
    float weight,
    float* y);

void remove_token(int token, float* x, int count);

inline bool is_greedy(const SpeechOptions& options) {
  return options.temperature < ops::kArgmaxTemperature;
}

inline float penalised(float x, float penalty) {
  return x < 0.0f ? x * penalty : x / penalty;
}

// Calls f(token) for every seen token, which are few of a vocabulary.
template <typename F>
void for_seen(const uint8_t* seen, int count, F f) {
  constexpr int width = sizeof(uint64_t);
  for (int begin = 0; begin < count; begin += width) {
    int end = begin + width;
    if (end <= count) {
      uint64_t any;
      __builtin_memcpy(&any, seen + begin, width);
      if (any == 0) {
        continue;
      }
    }
    for (int i = begin; i < count && i < end; ++i) {
      if (seen[i]) {
        f(i);
      }
    }
  }
}

// The k-th largest of x.
float kth_largest(const float* x, int count, int k);

// ops::filter_logits in place.
void filter_row(
    float* x,
    int count,
    const uint8_t* seen,
    const SpeechOptions& options,
    ops::SamplingOrder order);

// What the Gumbel-max rule takes the token with the largest of.
inline float gumbel_score(float x, DrawKey key, int token, int count) {
  float u = (random_word(key, token, count) >> 9) + 0.5f;
  return x - std::log(-std::log(u * 0x1p-23f));
}

int draw_from(const float* x, int count, DrawKey key);

void mark_token(int token, uint8_t* seen, int count);

} // namespace nightingale::cpu
