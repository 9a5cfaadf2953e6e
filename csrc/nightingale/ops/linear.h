#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/norm.h"

namespace nightingale::ops {

// x · wᵀ, then the epilogue.
// x: [..., K]; w: [N, K] float32, float16 or bfloat16, read as stored. On the
// CPU x is float32, or bfloat16 where the weights are too: then the processor's
// matrix units multiply and sums are float32. Quantized weights of 8 or 4 bits
// take x of any floating type; on the CPU results are then batch-invariant.
mx::array linear(
    const mx::array& x,
    const Matrix& w,
    const Epilogue& epilogue,
    mx::Stream s);

// linear(norm(x), w, epilogue), whose residual and type are not set.
mx::array norm_linear(
    const mx::array& x,
    const Norm& norm,
    const Matrix& w,
    const Epilogue& epilogue,
    mx::Stream s);

// swiglu(norm_linear(x, norm, gate_up)). gate_up: [2F, K], the gate's rows
// first → [..., F]
mx::array norm_swiglu(
    const mx::array& x,
    const Norm& norm,
    const Matrix& gate_up,
    mx::Stream s);

} // namespace nightingale::ops
