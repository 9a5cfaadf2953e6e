#pragma once

#include <vector>

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/product.h"

namespace nightingale::cpu {

// Loops for bfloat16 that this processor has and the system lets this process
// use, best first.
const std::vector<const MatrixLoops*>& matrix_loops();

// Whether there are any.
bool has_bf16_matrix_units();

// The name of the best, or "".
const char* bf16_name();

// Whether they multiply faster than integers of 8 bits are multiplied: tiles
// do, vectors do not.
bool has_bf16_tiles();

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
