#pragma once

#include <cmath>
#include <cstdint>

#include "nightingale/ops/cpu/simd.h"

namespace nightingale::cpu {

// Query rows of one tile, when BLAS runs it.
constexpr int kQueryRows = 64;

// Rows of queries of one head against its keys and values.
struct Attention {
  const float* q;
  int64_t q_stride;
  int rows;
  const void* k;
  const void* v;
  int64_t kv_stride;
  Storage storage;
  int visible; // keys that the first row sees
  bool causal; // each later row sees one more
  int depth;
  float* out;
  int64_t out_stride;

  int visible_to(int row) const {
    return causal ? visible + row : visible;
  }
  float scale() const {
    return 1.0f / std::sqrt(static_cast<float>(depth));
  }
};

// The softmax weights of one row, visible_to(row) of them.
void weigh(const Attention& a, int row, float* weights);

// What each of the last `rows` gives to the keys [begin, begin + count), 0 to
// those it does not see: y [rows, count].
void weigh_span(const Attention& a, int rows, int begin, int count, float* y);

// Runs rows [begin, end) of `whole`.
void attend(const Attention& whole, int begin, int end);

} // namespace nightingale::cpu
