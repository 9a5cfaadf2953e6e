#pragma once

#include "arrays.h"

namespace nightingale::testing {

// x · wᵀ in double precision.
inline Values linear_reference(const mx::array& x, const mx::array& w) {
  int inner = w.shape(1), outer = w.shape(0);
  Values in = values(x), weights = values(w), y;
  for (size_t row = 0; row < in.size() / inner; ++row) {
    for (int o = 0; o < outer; ++o) {
      double sum = 0.0;
      for (int i = 0; i < inner; ++i) {
        sum += in[row * inner + i] * weights[o * inner + i];
      }
      y.push_back(sum);
    }
  }
  return y;
}

} // namespace nightingale::testing
