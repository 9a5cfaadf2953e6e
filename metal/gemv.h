// Products of one or two rows with the rows of a matrix, in parts: the SIMD
// groups of a threadgroup share out the columns, so that x is read once and
// every lane has many loads under way, and both rows of x share every weight.
#include "weights.h"

// Eight weights of one row of a matrix [N, K].
template <typename W, typename S, int BITS, int GROUP, int N, int K> struct Weights8 {
#if BITS < 16
  // MLX's affine format, scale * q + bias. After the values of all N rows are the
  // scales, filled up to a multiple of eight, then the biases.
  Quantized8 quantized;
  S scale, bias;
  METAL_FUNC void load(const device uint* w, int row, int element) thread {
    constexpr int STRIDE = K * BITS / 32;
    const device S* scales = (const device S*)(w + long(N) * STRIDE);
    const device S* biases = scales + (N * (K / GROUP) + 7) / 8 * 8;
    int group = row * (K / GROUP) + element / GROUP;
    quantized.fetch(w + long(row) * STRIDE + element * BITS / 32);
    scale = scales[group];
    bias = biases[group];
  }
#else
  Raw8<W> raw;
  METAL_FUNC void load(const device W* w, int row, int element) thread {
    raw.fetch(w + long(row) * K + element);
  }
#endif
  // Adds to sums[r] the product with x[r], the same eight columns, which add up
  // to x_sums[r].
  template <int ROWS>
  METAL_FUNC void add_products(
      thread const float (*x)[8], thread const float* x_sums, thread float* sums) const thread {
    float v[8];
#if BITS < 16
    quantized.unpack(v);
    for (int r = 0; r < ROWS; ++r)
      sums[r] = fma(float(scale), dot8(x[r], v), fma(float(bias), x_sums[r], sums[r]));
#else
    raw.unpack(v);
    for (int r = 0; r < ROWS; ++r) sums[r] += dot8(x[r], v);
#endif
  }
};

// Lanes that differ in `mask` add up their values, of 2 * LEFT one half each, or
// where LEFT is 0 the last one both.
template <int LEFT> METAL_FUNC void share_sums(thread float* v, uint lane, uint mask) {
  bool upper = (lane & mask) != 0u;
  if (LEFT == 0) v[0] += simd_shuffle_xor(v[0], mask);
#pragma unroll
  for (int i = 0; i < LEFT; ++i) {
    float mine = upper ? v[i + LEFT] : v[i], other = upper ? v[i] : v[i + LEFT];
    v[i] = mine + simd_shuffle_xor(other, mask);
  }
}

// Adds COUNT values, a power of two up to 32, up over a SIMD group: 32 / COUNT
// lanes from lane i * 32 / COUNT on have the sum of v[i]. That is 16 exchanges
// for 16 values, not 80. v is used up.
template <int COUNT> METAL_FUNC float sum_each(thread float* v, uint lane) {
  share_sums<COUNT / 2>(v, lane, 16u);
  share_sums<COUNT / 4>(v, lane, 8u);
  share_sums<COUNT / 8>(v, lane, 4u);
  share_sums<COUNT / 16>(v, lane, 2u);
  share_sums<COUNT / 32>(v, lane, 1u);
  return v[0];
}

// Leaves the SIMD group's sums of COUNT values for sum_partials.
template <int COUNT>
METAL_FUNC void leave_sums(thread float* v, threadgroup float* partial, uint simd, uint lane) {
  constexpr uint EACH = 32 / COUNT;
  float sum = sum_each<COUNT>(v, lane);
  if (lane % EACH == 0u) partial[simd * COUNT + lane / EACH] = sum;
}

// Adds up, in order, what the SIMD groups have left for value `i`.
template <int SIMDS, int COUNT>
METAL_FUNC float sum_partials(threadgroup const float* partial, int i) {
  float sum = 0.0f;
  for (int g = 0; g < SIMDS; ++g) sum += partial[g * COUNT + i];
  return sum;
}
