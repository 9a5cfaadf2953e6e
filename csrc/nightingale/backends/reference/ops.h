#pragma once

#include "nightingale/backends/common.h"

// The ops as graphs of MLX ops: what a GPU runs where it has no kernel of ours,
// and what the other implementations are tested against.

namespace nightingale::reference {

#define OP(parameters, name) decltype(ops::name) name;
#define COMPOSITE(parameters, name)
#include "nightingale/backends/ops.inl"

// `y`, a product that took `x` in, after the epilogue.
mx::array apply_epilogue(
    mx::array y,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    mx::Stream s);

// The norm of x, of its type.
mx::array apply_norm(const mx::array& x, const ops::Norm& norm, mx::Stream s);

// Vectors of a quantized cache, see nightingale/ops/quantized_cache.h.
// x: [..., head_dim] → [..., words] uint32, and back
mx::array encode_heads(const mx::array& x, int bits, mx::Stream s);
mx::array
decode_heads(const mx::array& rows, int bits, mx::Dtype dtype, mx::Stream s);

} // namespace nightingale::reference
