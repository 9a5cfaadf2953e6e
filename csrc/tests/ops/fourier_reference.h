#pragma once

#include <complex>
#include <numbers>

#include "arrays.h"

namespace nightingale::testing {

// Squared magnitudes of bins 0 to n / 2, straight from the definition.
inline Values power_reference(const Values& frame) {
  int size = frame.size();
  std::vector<std::complex<double>> roots(size);
  for (int k = 0; k < size; ++k) {
    roots[k] = std::polar(1.0, -2 * std::numbers::pi * k / size);
  }
  Values power;
  for (int bin = 0; bin <= size / 2; ++bin) {
    std::complex<double> sum = 0;
    for (int n = 0; n < size; ++n) {
      sum += frame[n] * roots[int64_t(bin) * n % size];
    }
    power.push_back(std::norm(sum));
  }
  return power;
}

} // namespace nightingale::testing
