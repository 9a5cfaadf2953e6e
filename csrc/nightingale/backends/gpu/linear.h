#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/matrix.h"

namespace nightingale::gpu {

// As in nightingale/ops/linear.h. One or two rows go through the kernels gemv
// and norm_gemv; more are MLX's products, or go through tile_linear.
mx::array linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s);

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& w,
    mx::Stream s);

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& gate_up,
    mx::Stream s);

} // namespace nightingale::gpu
