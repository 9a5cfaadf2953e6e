#include "nightingale/io/affine_quantization.h"

namespace nightingale {

int quantized_bits(int64_t words, int64_t groups) {
  for (int bits : {8, 4}) {
    if (groups > 0 && words * 32 == groups * kQuantizedGroup * bits) {
      return bits;
    }
  }
  return 0;
}

void dequantize(
    const uint32_t* quantized,
    const float* scales,
    const float* biases,
    int bits,
    int64_t count,
    float* out) {
  int per_word = 32 / bits;
  uint32_t mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; i += per_word) {
    int64_t group = i / kQuantizedGroup;
    uint32_t word = quantized[i / per_word];
    for (int j = 0; j < per_word; ++j) {
      uint32_t code = (word >> (j * bits)) & mask;
      out[i + j] = scales[group] * static_cast<float>(code) + biases[group];
    }
  }
}

void widen_quantized(const uint32_t* quantized, int64_t count, uint32_t* out) {
  for (int64_t i = 0; i < count / 8; ++i) {
    for (int half = 0; half < 2; ++half) {
      uint32_t nibbles = quantized[i] >> (16 * half);
      out[2 * i + half] = (nibbles & 0xf) | (nibbles & 0xf0) << 4 |
          (nibbles & 0xf00) << 8 | (nibbles & 0xf000) << 12;
    }
  }
}

} // namespace nightingale
