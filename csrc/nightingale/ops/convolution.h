#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

struct Conv1d {
  int stride = 1;
  int dilation = 1;
  int groups = 1;
  int pad_left = 0; // zeros before the first row, and after the last
  int pad_right = 0;
};

// x: [B, T, C]; w: [O, K, C / groups] → [B, T', O]
mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const Conv1d& shape,
    mx::Stream s);

} // namespace nightingale::ops
