// The quantized loops for ARM processors that multiply and add bytes, sixteen
// at a time. An integer of 16 bits is two bytes, and a weight w of 8 bits is
// used as w - 128, which has a sign: the sum of a group is
//   256 * sum((w - 128) * upper) + sum((w - 128) * lower) + 128 * total.
// As in simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/vec_neon.h"

namespace {

#include "nightingale/backends/cpu/quantized_loops.inl"

void split(
    const int16_t* integers,
    int groups,
    int8_t* bytes,
    int32_t* totals) {
  const uint8x16_t order = {
      0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
  for (int g = 0; g < groups; ++g) {
    int32x4_t total = vdupq_n_s32(0);
    for (int k = 0; k < kQuantizedGroup; k += 16) {
      int16x8_t first = vld1q_s16(integers + k);
      int16x8_t second = vld1q_s16(integers + k + 8);
      int8x16_t upper = vrshrn_high_n_s16(vrshrn_n_s16(first, 8), second, 8);
      int8x16_t lower =
          vuzp1q_s8(vreinterpretq_s8_s16(first), vreinterpretq_s8_s16(second));
      vst1q_s8(bytes + k, vqtbl1q_s8(upper, order));
      vst1q_s8(bytes + kQuantizedGroup + k, vqtbl1q_s8(lower, order));
      total = vpadalq_s16(vpadalq_s16(total, first), second);
    }
    totals[g] = vaddvq_s32(total);
    integers += kQuantizedGroup;
    bytes += 2 * kQuantizedGroup;
  }
}

// Sums of a group: R rows by P vectors of four rows of the matrix.
template <int R, int P>
struct ByteSums {
  int32x4_t upper[R][P], lower[R][P];

  ByteSums() {
    for (int r = 0; r < R; ++r) {
      for (int p = 0; p < P; ++p) {
        upper[r][p] = lower[r][p] = vdupq_n_s32(0);
      }
    }
  }

  // Sixteen columns of the matrix, `shift` bits up in its bytes; x: those of
  // the first row's upper bytes.
  template <int bits, int shift>
  void add(const uint8_t* w, const int8_t* x, int64_t stride) {
    int8x16_t up[R], low[R];
    for (int r = 0; r < R; ++r) {
      up[r] = vld1q_s8(x + r * stride);
      low[r] = vld1q_s8(x + r * stride + kQuantizedGroup);
    }
    add_four<bits, shift, 0>(w, up, low);
    add_four<bits, shift, 1>(w, up, low);
    add_four<bits, shift, 2>(w, up, low);
    add_four<bits, shift, 3>(w, up, low);
  }

  int32x4_t total(int r, int p) const {
    return vaddq_s32(vshlq_n_s32(upper[r][p], 8), lower[r][p]);
  }

 private:
  template <int bits, int shift, int lane>
  void add_four(
      const uint8_t* w,
      const int8x16_t (&up)[R],
      const int8x16_t (&low)[R]) {
    const uint8_t* from = w + lane * 4 * kQuantizedTile;
    for (int line = 0; line < 16 * P; line += 64) {
      __builtin_prefetch(from + line + kQuantizedPrefetchBytes<bits>);
    }
    for (int p = 0; p < P; ++p) {
      int8x16_t weights = signed_weights<bits, shift>(vld1q_u8(from + 16 * p));
      for (int r = 0; r < R; ++r) {
        upper[r][p] = vdotq_laneq_s32(upper[r][p], weights, up[r], lane);
        lower[r][p] = vdotq_laneq_s32(lower[r][p], weights, low[r], lane);
      }
    }
  }

  template <int bits, int shift>
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

template <int bits, int R, int P>
inline ByteSums<R, P>
group_sums(const uint8_t* group, const int8_t* x, int64_t stride) {
  ByteSums<R, P> sums;
  constexpr int step = 16 * kQuantizedTile; // bytes of sixteen columns
  constexpr int columns = bits == 8 ? kQuantizedGroup : kQuantizedGroup / 2;
  for (int k = 0; k < columns; k += 16) {
    sums.template add<bits, 0>(group + k / 16 * step, x + k, stride);
  }
  for (int k = columns; k < kQuantizedGroup; k += 16) {
    const uint8_t* from = group + (k - columns) / 16 * step;
    sums.template add<bits, 4>(from, x + k, stride);
  }
  return sums;
}

// 4 * P rows of a tile, from `first` on, by R rows.
template <int bits, int R, int P>
inline void
byte_block(const QuantizedTileArgs& a, int tile, int row, int first) {
  const QuantizedRows x = a.x.from_row(row);
  int64_t stride = x.row_step * 2 * kQuantizedGroup;
  Vec y[R][P] = {};
  const uint8_t* group = a.tiles[tile];
  for (int tap = 0; tap < x.taps; ++tap) {
    int64_t at = tap * x.tap_step;
    for (int g = 0; g < x.groups;
         ++g, ++at, group += quantized_group_bytes(bits)) {
      auto sums = group_sums<bits, R, P>(
          group + 4 * first, x.bytes + at * 2 * kQuantizedGroup, stride);
      const f16* scales =
          reinterpret_cast<const f16*>(group + quantized_bytes(bits)) + first;
      __builtin_prefetch(
          reinterpret_cast<const uint8_t*>(scales) +
          kQuantizedPrefetchBytes<bits>);
      for (int p = 0; p < P; ++p) {
        Vec scale = Vec::load(scales + p * Vec::width);
        Vec bias = Vec::load(scales + kQuantizedTile + p * Vec::width);
        for (int r = 0; r < R; ++r) {
          int64_t place = r * x.row_step + at;
          int32x4_t total = sums.total(r, p);
          if constexpr (bits == 8) {
            total = vaddq_s32(total, vdupq_n_s32(128 * x.totals[place]));
          }
          Vec by_row = Vec::set1(x.scales[place]);
          Vec offset = Vec::set1(x.sums[place]);
          Vec sum{vcvtq_f32_s32(total)};
          y[r][p] = fma_once(scale, sum * by_row, y[r][p]);
          y[r][p] = fma_once(bias, offset, y[r][p]);
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) {
      float* to = a.y[tile] + (row + r) * a.y_stride + first;
      y[r][p].store(to + p * Vec::width);
    }
  }
}

// Sixteen sums or so: with more they do not stay in registers.
template <int R>
constexpr int kByteParts = R == 1 ? 8
    : R == 2                      ? 4
                                  : 2;

template <int bits, int R>
inline void byte_blocks(const QuantizedTileArgs& a, int row, int count) {
  if (count == R) {
    constexpr int parts = kByteParts<R>;
    for (int tile = 0; tile < 2 && a.tiles[tile]; ++tile) {
      for (int first = 0; first < kQuantizedTile; first += 4 * parts) {
        byte_block<bits, R, parts>(a, tile, row, first);
      }
    }
  } else if constexpr (R > 1) {
    byte_blocks<bits, R - 1>(a, row, count);
  }
}

constexpr int kMostByteRows = 4;

template <int bits>
void byte_tile(const QuantizedTileArgs& a) {
  int blocks = (a.x.rows + kMostByteRows - 1) / kMostByteRows;
  for (int i = 0, row = 0; i < blocks; ++i) {
    int left = blocks - i;
    int count = (a.x.rows - row + left - 1) / left;
    byte_blocks<bits, kMostByteRows>(a, row, count);
    row += count;
  }
}

} // namespace

namespace nightingale::cpu {

extern const QuantizedLoops quantized_loops_dot;
const QuantizedLoops quantized_loops_dot = {
    encode,
    to_integers,
    split,
    {byte_tile<8>, byte_tile<4>}};

} // namespace nightingale::cpu
