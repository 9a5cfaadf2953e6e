#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// x * sigmoid(x)
mx::array silu(const mx::array& x, mx::Stream s);

// silu(gate) * up. gate_up: [..., 2F], gate first → [..., F]
mx::array swiglu(const mx::array& gate_up, mx::Stream s);

} // namespace nightingale::ops
