#pragma once

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/ops/norm.h"

namespace nightingale::gpu {

// Whether the kernels that keep a row of `channels` in registers run on `s`.
bool has_row_kernels(int channels, mx::Stream s);

// sum = residual + (x + bias), of the residual's type, and the norm of it as
// `dtype`: one launch. x, residual: [..., C], the results as x
ops::Normed add_norm(
    const mx::array& x,
    const mx::array& bias,
    const mx::array& residual,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::gpu
