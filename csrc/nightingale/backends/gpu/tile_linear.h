#pragma once

#include "nightingale/ops/epilogue.h"
#include "nightingale/ops/matrix.h"
#include "nightingale/ops/norm.h"

namespace nightingale::gpu {

// Whether tile_linear is for this product: 16-bit numbers, sizes that tiles
// fill, no Snake.
bool fits_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue);
// And it should run on `s`.
bool can_use_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s);

// x · wᵀ, then the epilogue: one launch. An Error where it does not fit.
mx::array tile_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s);

// The same for tile_linear_norm, whose groups make whole rows of the result.
bool fits_norm_tiles(const mx::array& x, const ops::Matrix& w);
bool can_use_norm_tiles(const mx::array& x, const ops::Matrix& w, mx::Stream s);

// As ops::linear_add_norm: one launch.
ops::Normed tile_linear_norm(
    const mx::array& x,
    const ops::Matrix& w,
    const mx::array& bias,
    const mx::array& residual,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::gpu
