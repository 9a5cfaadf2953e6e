#pragma once

// One layer of an LSTM in double precision.

#include <cmath>

#include "arrays.h"

namespace nightingale::testing {

// x: [B, T, I] → [B, T, H]
inline Values lstm_reference(
    const Values& x,
    int batch,
    int length,
    const mx::array& w_ih,
    const mx::array& w_hh,
    const mx::array& bias) {
  int inputs = w_ih.shape(1), units = w_hh.shape(1);
  Values from_input = values(w_ih), from_state = values(w_hh);
  Values b = values(bias), y;
  auto dot = [](const double* a, const double* c, int count) {
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      sum += a[k] * c[k];
    }
    return sum;
  };
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int row = 0; row < batch; ++row) {
    Values hidden(units), cell(units);
    for (int t = 0; t < length; ++t) {
      const double* now = x.data() + (row * length + t) * inputs;
      Values gates(4 * units);
      for (int g = 0; g < 4 * units; ++g) {
        gates[g] = b[g] + dot(now, &from_input[g * inputs], inputs) +
            dot(hidden.data(), &from_state[g * units], units);
      }
      for (int u = 0; u < units; ++u) {
        double in = sigmoid(gates[u]), forget = sigmoid(gates[units + u]);
        double fresh = std::tanh(gates[2 * units + u]);
        cell[u] = forget * cell[u] + in * fresh;
        hidden[u] = sigmoid(gates[3 * units + u]) * std::tanh(cell[u]);
      }
      y.insert(y.end(), hidden.begin(), hidden.end());
    }
  }
  return y;
}

} // namespace nightingale::testing
