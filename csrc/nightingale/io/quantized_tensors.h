#pragma once

#include <cstdint>

namespace nightingale {

// Matrices in MLX's affine format: integers q of 8 or 4 bits, the first of a
// row in the lowest bits of its first word; w = scale * q + bias, with a scale
// and a bias for each group of columns.
constexpr int kQuantizedGroup = 64;

// The bits of an element where a row has `words` 32-bit words and `groups`
// groups; 0 where neither 8 nor 4 fits.
int quantized_bits(int64_t words, int64_t groups);

// 4-bit elements as 8-bit ones, which have the same values under the same
// scales and biases. count: of elements, a multiple of 8
void widen_quantized(const uint32_t* quantized, int64_t count, uint32_t* out);

} // namespace nightingale
