#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Rows of the gates i, f, g, o.
struct LstmWeights {
  mx::array w_ih; // [4H, I]
  mx::array w_hh; // [4H, H]
  mx::array bias; // [4H], the sum of the input's and the state's
};

// One layer of an LSTM over time, from a state of zeros.
// x: [B, T, I] → hidden states [B, T, H] float32
mx::array lstm(const mx::array& x, const LstmWeights& weights, mx::Stream s);

} // namespace nightingale::ops
