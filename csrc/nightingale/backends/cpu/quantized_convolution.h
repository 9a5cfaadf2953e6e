#pragma once

#include "nightingale/ops/convolution.h"

namespace nightingale::cpu {

// conv1d of nightingale/ops/convolution.h with a kernel in codes. The rows of
// the input become integers once, whatever the number of taps.
mx::array code_conv1d(
    const mx::array& x,
    const ops::Kernel& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s);

} // namespace nightingale::cpu
