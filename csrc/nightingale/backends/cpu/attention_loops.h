#pragma once

namespace nightingale::cpu {

// What attention does to a row of scores, between its two products.
struct AttentionLoops {
  // x[i] = exp(scale * (x[i] - max)), after `more`, unless null, was added;
  // gives the sum. Both have room for whole vectors, whose rest x may lose.
  float (*exp_row)(float* x, const float* more, int count, float scale);

  void (*scale_row)(const float* x, float factor, int count, float* y);
};

} // namespace nightingale::cpu
