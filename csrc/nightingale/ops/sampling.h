#pragma once

#include "nightingale/ops/backend.h"
#include "nightingale/ops/random.h"

namespace nightingale::ops {

struct Sampling {
  float temperature = 0.8f; // below kArgmaxTemperature: the likeliest token
  float repetition_penalty = 1.2f;
  float min_p = 0.05f;
  float top_p = 1.0f;
};

constexpr float kArgmaxTemperature = 0.001f;

// Classifier-free guidance: cond + weight * (cond - uncond). logits: [2, V],
// the conditioned row first, or [1, V], which is passed on → [V] float32
mx::array guide(const mx::array& logits, float weight, mx::Stream s);

// The reference's chain: repetition penalty over the seen tokens, temperature,
// min-p, top-p. logits: [V] float32; seen: [V] uint8 → [V], what was removed
// being -inf. The likeliest token is always kept.
mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const Sampling& sampling,
    mx::Stream s);

// A draw from softmax(logits) by the Gumbel-max rule: [V] → [1] int32
mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s);

// Makes one token impossible: [V] → [V]
mx::array forbid_token(const mx::array& logits, int token, mx::Stream s);

// Sets seen[token] and returns it; the returned array takes over the buffer.
mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s);

} // namespace nightingale::ops
