#pragma once

#include <vector>

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/ops/matrix.h"

// What the kernels that multiply one or two rows with a matrix have in common:
// norm_gemv, gemv, attention_out.

namespace nightingale::gpu {

// Rows that share the reading of a matrix: the two of guidance.
constexpr int kGemvRows = 2;

// Whether these kernels take x · wᵀ.
bool can_use_gemv(const mx::array& x, const ops::Matrix& w, mx::Stream s);

// Their input `w`.
const mx::array& stored(const ops::Matrix& w);

// How the work is cut: products of one threadgroup, and sizes of it.
struct GemvShape {
  int block;
  std::vector<int> threads;

  static GemvShape of(const ops::Matrix& w);
};

// The constants that describe the matrix and the result.
std::vector<Constant> gemv_constants(
    const ops::Matrix& w,
    const GemvShape& shape,
    int rows,
    mx::Dtype result);

} // namespace nightingale::gpu
