#include <vector>

#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array
lstm(const mx::array& x, const ops::LstmWeights& weights, mx::Stream s) {
  const auto& [w_ih, w_hh, bias] = weights;
  int batch = x.shape(0), length = x.shape(1), units = w_hh.shape(1);
  auto from_input =
      reference::linear(x, w_ih, {.bias = bias, .dtype = mx::float32}, s);
  auto columns = mx::transpose(w_hh, s);
  auto hidden = mx::zeros({batch, units}, mx::float32, s), cell = hidden;
  std::vector<mx::array> states;
  for (int t = 0; t < length; ++t) {
    auto sums = mx::slice(from_input, {0, t, 0}, {batch, t + 1, 4 * units}, s);
    sums = mx::addmm(mx::squeeze(sums, 1, s), hidden, columns, 1.0f, 1.0f, s);
    auto gates = mx::split(sums, 4, -1, s);
    auto fresh =
        mx::multiply(mx::sigmoid(gates[0], s), mx::tanh(gates[2], s), s);
    auto kept = mx::multiply(mx::sigmoid(gates[1], s), cell, s);
    cell = mx::add(kept, fresh, s);
    hidden = mx::multiply(mx::sigmoid(gates[3], s), mx::tanh(cell, s), s);
    states.push_back(hidden);
  }
  return mx::stack(states, 1, s);
}

} // namespace nightingale::reference
