#pragma once

#include <span>

#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/ops/alignment.h"

namespace nightingale::cpu {

// What one step is judged by; see ops::AlignmentInput.
struct AlignmentView {
  std::span<const mx::array> weights;
  int token;
  int stop_token;
  ops::AlignmentLimits limits;
};

// Updates the state, and the logits that go on, by one step.
void follow_step(
    const AlignmentView& step,
    int* marks,
    float* sums,
    float* logits,
    int count);

} // namespace nightingale::cpu
