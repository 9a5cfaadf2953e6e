// The loops behind `AttentionLoops`, part of simd_loops.inl.

using nightingale::cpu::AttentionLoops;

constexpr float kLeast = -3.402823466e38f;

// Four maxima side by side: one alone would wait for itself.
inline float row_max(const float* x, int vectors) {
  Vec most[4];
  for (Vec& each : most) {
    each = Vec::set1(kLeast);
  }
  int i = 0;
  for (; i + 4 <= vectors; i += 4) {
    for (int j = 0; j < 4; ++j) {
      most[j] = max(most[j], Vec::load(x + (i + j) * Vec::width));
    }
  }
  for (; i < vectors; ++i) {
    most[0] = max(most[0], Vec::load(x + i * Vec::width));
  }
  return max(max(most[0], most[1]), max(most[2], most[3])).max_lane();
}

float exp_row(float* x, const float* more, int count, float scale) {
  int vectors = (count + Vec::width - 1) / Vec::width;
  for (int i = 0; more && i < vectors; ++i) {
    Vec sum = Vec::load(x + i * Vec::width) + Vec::load(more + i * Vec::width);
    sum.store(x + i * Vec::width);
  }
  for (int i = count; i < vectors * Vec::width; ++i) {
    x[i] = kLeast;
  }
  Vec shift = Vec::set1(row_max(x, vectors)), sum = Vec::zero();
  Vec factor = Vec::set1(scale * 1.44269504088896f);
  for (int i = 0; i < vectors; ++i) {
    Vec weight = exp2_vec((Vec::load(x + i * Vec::width) - shift) * factor);
    weight.store(x + i * Vec::width);
    sum = sum + weight;
  }
  return sum.sum();
}

void scale_row(const float* x, float factor, int count, float* y) {
  Vec by = Vec::set1(factor);
  map(count, y, [=](Vec a) { return a * by; }, x);
}

constexpr AttentionLoops attention_loops() {
  return {exp_row, scale_row};
}
