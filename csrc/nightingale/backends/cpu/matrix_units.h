#pragma once

#include "nightingale/backends/cpu/product.h"

namespace nightingale::cpu {

// Whether this processor multiplies bfloat16 matrices in hardware and the
// system lets this process use it.
bool has_bf16_matrix_units();

// product() of bfloat16 numbers, whose sums are float32. Needs the units.
void matrix_product(
    const Windows<uint16_t>& x,
    const uint16_t* w,
    int columns,
    const EpilogueWriter& epilogue);

// The same with a quantized matrix, dequantized panel by panel.
void matrix_product(
    const Windows<uint16_t>& x,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue);

// full_attention of bfloat16 arrays whose last axis is contiguous, for heads of
// a size that can_use_matrix_attention.
bool can_use_matrix_attention(int head_dim);
void matrix_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::array& out);

} // namespace nightingale::cpu
