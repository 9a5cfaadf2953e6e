#pragma once

#include <cstdint>

namespace nightingale {

// Matrices in MLX's affine format: codes of 8 or 4 bits, the first of a row in
// the lowest bits of its first word; w = scale * code + bias, with a scale and
// a bias for each group of columns.
constexpr int kQuantizedGroup = 64;

// The bits of codes where a row has `words` 32-bit words and `groups` groups; 0
// where no width that we read fits.
int quantized_bits(int64_t words, int64_t groups);

// What `count` codes stand for, a whole number of groups.
void dequantize(
    const uint32_t* quantized,
    const float* scales,
    const float* biases,
    int bits,
    int64_t count,
    float* out);

// 4-bit codes as 8-bit ones of the same scales and biases, which mean exactly
// the same. count: of codes, a multiple of 8
void widen_quantized(const uint32_t* quantized, int64_t count, uint32_t* out);

} // namespace nightingale
