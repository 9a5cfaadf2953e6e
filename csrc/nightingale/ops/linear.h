#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::ops {

// x · wᵀ, then the epilogue.
// x: [..., K]; w: [N, K] float32, float16 or bfloat16, read as stored. On the
// CPU x is float32, or bfloat16 beside weights of that type: then the products
// are taken by the processor's matrix units and summed in float32. Codes of 8
// or 4 bits take rows of any floating type; on the CPU every row of the result
// has then the same bits in any company.
mx::array linear(
    const mx::array& x,
    const Matrix& w,
    const Epilogue& epilogue,
    mx::Stream s);

inline mx::array linear(const mx::array& x, const Matrix& w, mx::Stream s) {
  return linear(x, w, {}, s);
}

// linear(rms_norm(x, norm, eps), w). norm: [K]
mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const Matrix& w,
    mx::Stream s);

// swiglu(norm_linear(x, norm, eps, gate_up)). gate_up: [2F, K], the gate's rows
// first → [..., F]
mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const Matrix& gate_up,
    mx::Stream s);

} // namespace nightingale::ops
