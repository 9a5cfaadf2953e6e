#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// One layer of an LSTM over time, from a state of zeros.
// x: [B, T, I]; w_ih: [4H, I]; w_hh: [4H, H]; bias: [4H], that of the input and
// of the state added; rows of the gates i, f, g, o → hidden states [B, T, H]
// float32
mx::array lstm(
    const mx::array& x,
    const mx::array& w_ih,
    const mx::array& w_hh,
    const mx::array& bias,
    mx::Stream s);

} // namespace nightingale::ops
