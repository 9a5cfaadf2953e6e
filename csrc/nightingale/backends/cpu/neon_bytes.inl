// Rows as bytes for the quantized loops of ARM. Part of the files that include
// it, and as free of standard headers.

// Sixteen integers as bytes with signs, four at a time in the order of
// kQuantizedOrder: an integer is 256 * upper + lower.
struct SplitBytes {
  int8x16_t upper, lower;

  static SplitBytes of(int16x8_t first, int16x8_t second) {
    const uint8x16_t order = {
        0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    int8x16_t upper = vrshrn_high_n_s16(vrshrn_n_s16(first, 8), second, 8);
    int8x16_t lower =
        vuzp1q_s8(vreinterpretq_s8_s16(first), vreinterpretq_s8_s16(second));
    return {vqtbl1q_s8(upper, order), vqtbl1q_s8(lower, order)};
  }
};
