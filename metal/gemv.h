// Products of one or two rows with the rows of a matrix, in pieces: the SIMD
// groups of a threadgroup share out the columns, so that x is read once and
// every lane has many loads under way, and both rows of x share every weight.
#include "weights.h"

// An integer below 2^23 as it is, by way of 2^23 + i, whose last bits it is:
// GPUs convert integers at a fraction of the rate at which they add.
METAL_FUNC float small_float(uint i) {
  return as_type<float>(0x4b000000u | i) - 8388608.0f;
}

// Eight weights from column `element` of a row. BITS is 32 or 16 for floats, 8
// or 4 for the codes of MLX's affine format, packed in uint.
template <typename W, int BITS> struct Weights8 {
  static METAL_FUNC void load(const device W* row, int element, thread float* v) {
    load8(row + element, v);
  }
};
template <typename W> struct Weights8<W, 8> {
  static METAL_FUNC void load(const device W* row, int element, thread float* v) {
    uint2 q = *(const device uint2*)(row + element / 4);
    for (int i = 0; i < 4; ++i) {
      v[i] = small_float((q.x >> (8 * i)) & 255u);
      v[i + 4] = small_float((q.y >> (8 * i)) & 255u);
    }
  }
};
template <typename W> struct Weights8<W, 4> {
  static METAL_FUNC void load(const device W* row, int element, thread float* v) {
    uint q = row[element / 8];
    for (int i = 0; i < 8; ++i) v[i] = small_float((q >> (4 * i)) & 15u);
  }
};

// Adds to sums[r] the product of x[r] (eight columns from `element`) with one
// row of weights. Codes stand for scale * code + bias; behind the codes of all
// N rows are the scales, filled up to a multiple of eight, then the biases.
template <typename W, typename S, int BITS, int GROUP, int N, int K, int ROWS>
METAL_FUNC void add_products(
    const device W* w, int row, int element, thread const float (*x)[8],
    thread const float* x_sums, thread float* sums) {
  constexpr int STRIDE = K * BITS / (8 * int(sizeof(W)));
  float v[8];
  Weights8<W, BITS>::load(w + long(row) * STRIDE, element, v);
  if (BITS < 16) {
    const device S* scales = (const device S*)(w + long(N) * STRIDE);
    const device S* biases = scales + (N * (K / GROUP) + 7) / 8 * 8;
    int group = row * (K / GROUP) + element / GROUP;
    float scale = float(scales[group]), bias = float(biases[group]);
    for (int r = 0; r < ROWS; ++r) sums[r] += fma(scale, dot8(x[r], v), bias * x_sums[r]);
  } else {
    for (int r = 0; r < ROWS; ++r) sums[r] += dot8(x[r], v);
  }
}

// Leaves the SIMD group's sums of COUNT outputs for sum_partials.
template <int COUNT, int ROWS>
METAL_FUNC void leave_sums(
    thread const float (*sums)[ROWS], threadgroup float* partial, uint simd, uint lane) {
  for (int o = 0; o < COUNT; ++o) {
    for (int r = 0; r < ROWS; ++r) {
      float sum = simd_sum(sums[o][r]);
      if (lane == 0) partial[(int(simd) * COUNT + o) * ROWS + r] = sum;
    }
  }
}

// Adds up, in order, what the SIMD groups have left for value `i`.
template <int SIMDS, int VALUES>
METAL_FUNC float sum_partials(threadgroup const float* partial, int i) {
  float sum = 0.0f;
  for (int g = 0; g < SIMDS; ++g) sum += partial[g * VALUES + i];
  return sum;
}
