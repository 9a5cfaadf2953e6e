#pragma once

#include <cmath>
#include <cstdint>

#include "nightingale/backends/cpu/cache_rows.h"

namespace nightingale::cpu {

// Query rows of one tile, when BLAS runs it.
constexpr int kQueryRows = 64;

// Rows of queries of one head against its cache. Row 0 sees `visible` keys,
// each later row one more.
struct Attention {
  const float* q;
  int64_t q_stride;
  int rows;
  CacheRows cache;
  const char* k;
  const char* v = nullptr;
  int visible;
  float* out = nullptr;
  int64_t out_stride = 0;
  // Unless null, each key's weights of all rows are added here.
  float* mass = nullptr;

  int visible_to(int row) const {
    return visible + row;
  }
  float scale() const {
    return 1.0f / std::sqrt(static_cast<float>(cache.depth));
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
