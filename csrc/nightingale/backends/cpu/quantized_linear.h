#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/matrix.h"

// The ops of nightingale/ops/linear.h with matrices in codes, packed for the
// CPU. Every row of a result is the same in any company.

namespace nightingale::cpu {

mx::array quantized_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s);

mx::array norm_quantized_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& w,
    mx::Stream s);

mx::array norm_quantized_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& gate_up,
    mx::Stream s);

} // namespace nightingale::cpu
