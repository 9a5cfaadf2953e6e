// The quantized loops for ARM processors that multiply two rows of eight bytes
// by two (FEAT_I8MM). Weights have no sign here, so that totals of the rows are
// not needed. An operand of a row of 16 bits is its upper and its lower bytes;
// of 8 bits, two rows. As in simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/vec_neon.h"

namespace {

#include "nightingale/backends/cpu/neon_bytes.inl"
#include "nightingale/backends/cpu/quantized_loops.inl"

// Operands of one row: eight upper bytes before the eight lower ones.
void split_in_eights(
    const int16_t* integers,
    int groups,
    int8_t* bytes,
    int32_t*) {
  for (int k = 0; k < groups * kQuantizedGroup; k += 16) {
    auto [upper, lower] =
        SplitBytes::of(vld1q_s16(integers + k), vld1q_s16(integers + k + 8));
    int64x2_t high = vreinterpretq_s64_s8(upper);
    int64x2_t low = vreinterpretq_s64_s8(lower);
    int8_t* to = bytes + 2 * k;
    vst1q_s8(to, vreinterpretq_s8_s64(vzip1q_s64(high, low)));
    vst1q_s8(to + 16, vreinterpretq_s8_s64(vzip2q_s64(high, low)));
  }
}

void order_bytes(const int16_t* integers, int groups, int8_t* bytes, int32_t*) {
  for (int k = 0; k < groups * kQuantizedGroup; k += 16) {
    int16x8_t first = vld1q_s16(integers + k);
    int16x8_t second = vld1q_s16(integers + k + 8);
    vst1q_s8(bytes + k, SplitBytes::of(first, second).lower);
  }
}

// Eight columns of four rows of a tile, two rows in each operand.
struct WeightOperands {
  uint8x16_t v[2];

  // from: the first of two blocks of four columns
  static WeightOperands load(const uint8_t* from) {
    uint32x4_t first = vreinterpretq_u32_u8(vld1q_u8(from));
    uint32x4_t second =
        vreinterpretq_u32_u8(vld1q_u8(from + 4 * kQuantizedTile));
    return {
        {vreinterpretq_u8_u32(vzip1q_u32(first, second)),
         vreinterpretq_u8_u32(vzip2q_u32(first, second))}};
  }
  WeightOperands lower_halves() const {
    uint8x16_t mask = vdupq_n_u8(0xf);
    return {{vandq_u8(v[0], mask), vandq_u8(v[1], mask)}};
  }
  WeightOperands upper_halves() const {
    return {{vshrq_n_u8(v[0], 4), vshrq_n_u8(v[1], 4)}};
  }
};

template <int digits, int R>
constexpr int kRowOperands = (digits * R + 1) / 2;

template <int digits, int bits, int R, int P>
struct ByteSums {
  static constexpr int operands = kRowOperands<digits, R>;
  // Of each two rows of the tile by the two parts of an operand:
  // [0, 0], [0, 1], [1, 0], [1, 1]
  int32x4_t v[operands][P][2];

  static ByteSums of(const uint8_t* group, const int8_t* x, int64_t stride) {
    ByteSums sums;
    UNROLL for (int i = 0; i < operands; ++i) {
      UNROLL for (int p = 0; p < P; ++p) {
        sums.v[i][p][0] = sums.v[i][p][1] = vdupq_n_s32(0);
      }
    }
    constexpr int columns = kQuantizedGroup * bits / 8;
    constexpr int block = 4 * kQuantizedTile; // bytes of four columns
    for (int k = 0; k < columns; k += 8) {
      const uint8_t* from = group + k / 4 * block;
      for (int line = 0; line < 16 * P; line += 64) {
        const uint8_t* ahead = from + line + kQuantizedPrefetchBytes<bits>;
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + block);
      }
      UNROLL for (int p = 0; p < P; ++p) {
        auto weights = WeightOperands::load(from + 16 * p);
        if constexpr (bits == 8) {
          sums.add(p, weights, x, stride, k);
        } else {
          sums.add(p, weights.lower_halves(), x, stride, k);
          sums.add(p, weights.upper_halves(), x, stride, k + columns);
        }
      }
    }
    return sums;
  }

  Vec floats(int r, int p, const int32_t*) const {
    const auto& pair = v[digits == 2 ? r : r / 2][p];
    int32x4_t first = vuzp1q_s32(pair[0], pair[1]);
    int32x4_t second = vuzp2q_s32(pair[0], pair[1]);
    if constexpr (digits == 2) {
      return {vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(first, 8), second))};
    }
    return {vcvtq_f32_s32(r % 2 == 0 ? first : second)};
  }

 private:
  // Eight columns, from k on.
  void
  add(int p, WeightOperands weights, const int8_t* x, int64_t stride, int k) {
    UNROLL for (int i = 0; i < operands; ++i) {
      int8x16_t row = row_operand(x, stride, k, i);
      v[i][p][0] = vusmmlaq_s32(v[i][p][0], weights.v[0], row);
      v[i][p][1] = vusmmlaq_s32(v[i][p][1], weights.v[1], row);
    }
  }

  static int8x16_t row_operand(const int8_t* x, int64_t stride, int k, int i) {
    if constexpr (digits == 2) {
      return vld1q_s8(x + i * stride + 2 * k);
    }
    // A row that is left over is taken twice.
    int first = 2 * i, second = first + 1 < R ? first + 1 : first;
    return vcombine_s8(
        vld1_s8(x + first * stride + k), vld1_s8(x + second * stride + k));
  }
};

// Sixteen sums or so: with more they do not stay in registers.
template <int digits>
constexpr int kMostByteRows = 8 / digits;

template <int digits, int R>
constexpr int kByteParts = kRowOperands<digits, R> == 1 ? 8
    : kRowOperands<digits, R> == 2                      ? 4
                                                        : 2;

#include "nightingale/backends/cpu/quantized_bytes.inl"

} // namespace

namespace nightingale::cpu {

extern const QuantizedLoops quantized_loops_i8mm;
const QuantizedLoops quantized_loops_i8mm = {
    encode,
    to_integers,
    {split_in_eights, order_bytes},
    {{byte_tile<2, 8>, byte_tile<2, 4>}, {byte_tile<1, 8>, byte_tile<1, 4>}}};

} // namespace nightingale::cpu
