// The quantized loops for ARM processors that multiply and add bytes, sixteen
// at a time. A weight w of 8 bits is used as w - 128, which has a sign: the sum
// of a group is
//   sum((w - 128) * byte) + 128 * total
// and, of integers of 16 bits,
//   256 * sum((w - 128) * upper) + sum((w - 128) * lower) + 128 * total.
// As in simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/vec_neon.h"

namespace {

#include "nightingale/backends/cpu/neon_bytes.inl"
#include "nightingale/backends/cpu/quantized_loops.inl"

template <int digits>
void split(
    const int16_t* integers,
    int groups,
    int8_t* bytes,
    int32_t* totals) {
  for (int g = 0; g < groups; ++g) {
    int32x4_t total = vdupq_n_s32(0);
    for (int k = 0; k < kQuantizedGroup; k += 16) {
      int16x8_t first = vld1q_s16(integers + k);
      int16x8_t second = vld1q_s16(integers + k + 8);
      SplitBytes split = SplitBytes::of(first, second);
      int8_t* to = bytes + k;
      if constexpr (digits == 2) {
        vst1q_s8(to, split.upper);
        to += kQuantizedGroup;
      }
      vst1q_s8(to, split.lower);
      total = vpadalq_s16(vpadalq_s16(total, first), second);
    }
    totals[g] = vaddvq_s32(total);
    integers += kQuantizedGroup;
    bytes += digits * kQuantizedGroup;
  }
}

template <int digits, int bits, int R, int P>
struct ByteSums {
  int32x4_t v[digits][R][P]; // of upper bytes before the lower

  static ByteSums of(const uint8_t* group, const int8_t* x, int64_t stride) {
    ByteSums sums;
    for (int d = 0; d < digits; ++d) {
      for (int r = 0; r < R; ++r) {
        for (int p = 0; p < P; ++p) {
          sums.v[d][r][p] = vdupq_n_s32(0);
        }
      }
    }
    constexpr int step = 16 * kQuantizedTile; // bytes of sixteen columns
    constexpr int columns = bits == 8 ? kQuantizedGroup : kQuantizedGroup / 2;
    for (int k = 0; k < columns; k += 16) {
      sums.template add<0>(group + k / 16 * step, x + k, stride);
    }
    for (int k = columns; k < kQuantizedGroup; k += 16) {
      const uint8_t* from = group + (k - columns) / 16 * step;
      sums.template add<4>(from, x + k, stride);
    }
    return sums;
  }

  Vec floats(int r, int p, const int32_t* total) const {
    int32x4_t sum = v[digits - 1][r][p];
    if constexpr (digits == 2) {
      sum = vaddq_s32(vshlq_n_s32(v[0][r][p], 8), sum);
    }
    if constexpr (bits == 8) {
      sum = vaddq_s32(sum, vdupq_n_s32(128 * *total));
    }
    return {vcvtq_f32_s32(sum)};
  }

 private:
  // Sixteen columns of the matrix, `shift` bits up in its bytes; x: those of
  // the first row's first bytes.
  template <int shift>
  void add(const uint8_t* w, const int8_t* x, int64_t stride) {
    int8x16_t rows[digits][R];
    for (int d = 0; d < digits; ++d) {
      for (int r = 0; r < R; ++r) {
        rows[d][r] = vld1q_s8(x + r * stride + d * kQuantizedGroup);
      }
    }
    add_four<shift, 0>(w, rows);
    add_four<shift, 1>(w, rows);
    add_four<shift, 2>(w, rows);
    add_four<shift, 3>(w, rows);
  }

  template <int shift, int lane>
  void add_four(const uint8_t* w, const int8x16_t (&rows)[digits][R]) {
    const uint8_t* from = w + lane * 4 * kQuantizedTile;
    for (int line = 0; line < 16 * P; line += 64) {
      __builtin_prefetch(from + line + kQuantizedPrefetchBytes<bits>);
    }
    for (int p = 0; p < P; ++p) {
      int8x16_t weights = signed_weights<shift>(vld1q_u8(from + 16 * p));
      for (int r = 0; r < R; ++r) {
        for (int d = 0; d < digits; ++d) {
          v[d][r][p] = vdotq_laneq_s32(v[d][r][p], weights, rows[d][r], lane);
        }
      }
    }
  }

  template <int shift>
  static int8x16_t signed_weights(uint8x16_t w) {
    if constexpr (bits == 8) {
      return vreinterpretq_s8_u8(veorq_u8(w, vdupq_n_u8(0x80)));
    } else if constexpr (shift == 4) {
      return vreinterpretq_s8_u8(vshrq_n_u8(w, 4));
    } else {
      return vreinterpretq_s8_u8(vandq_u8(w, vdupq_n_u8(0xf)));
    }
  }
};

// Sixteen sums or so: with more they do not stay in registers.
template <int digits>
constexpr int kMostByteRows = 4;

template <int digits, int R>
constexpr int kByteParts = R == 1 ? 8
    : R == 2 || digits == 1       ? 4
                                  : 2;

#include "nightingale/backends/cpu/quantized_bytes.inl"

} // namespace

namespace nightingale::cpu {

extern const QuantizedLoops quantized_loops_dot;
const QuantizedLoops quantized_loops_dot = {
    encode,
    to_integers,
    {split<2>, split<1>},
    {{byte_tile<2, 8>, byte_tile<2, 4>}, {byte_tile<1, 8>, byte_tile<1, 4>}}};

} // namespace nightingale::cpu
