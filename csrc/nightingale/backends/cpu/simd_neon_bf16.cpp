// The loops behind `MatrixLoops` for ARM processors that multiply two rows of
// four bfloat16 numbers by two (bfmmla of FEAT_BF16). As in simd_loops.inl, no
// standard headers.

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/vec_neon.h"

namespace nightingale::cpu {

extern const MatrixLoops matrix_loops_neon_bf16;

} // namespace nightingale::cpu

namespace {

using namespace nightingale::cpu;

constexpr int kTile = kMatrixTile;

// Depth that an instruction multiplies.
constexpr int kStep = 4;

// A panel is two halves of its columns. Of each kStep numbers of depth, a half
// has the columns beside each other. One of 1024 in depth takes 32 KiB.
constexpr int kHalf = kTile / 2;

// Rows whose sums with half a panel stay in 16 of 32 registers.
constexpr int kRows = 4;

inline Vec load_first(const float* p, int count, Vec behind) {
  if (count == 0) {
    return behind;
  }
  const int32x4_t lanes = {0, 1, 2, 3};
  uint32x4_t some = vcltq_s32(lanes, vdupq_n_s32(count));
  return {vbslq_f32(some, vld1q_f32(p), behind.v)};
}

inline Vec keep_first(Vec x, int count) {
  const int32x4_t lanes = {0, 1, 2, 3};
  uint32x4_t some = vcltq_s32(lanes, vdupq_n_s32(count));
  return {vbslq_f32(some, x.v, vdupq_n_f32(0.0f))};
}

inline void store_rounded(Vec x, uint16_t* p) {
  bfloat16x4_t rounded = vcvt_bf16_f32(x.v);
  __builtin_memcpy(p, &rounded, sizeof(rounded));
}

// A power is added to the exponent, which must not become negative.
inline Vec within_exponents(Vec x) {
  return max(Vec::set1(-126.0f), x);
}

#include "nightingale/backends/cpu/matrix_attention.inl"

inline uint16x8_t load_some(const uint16_t* p, int count) {
  uint16_t padded[8] = {};
  for (int i = 0; i < count; ++i) {
    padded[i] = p[i];
  }
  return vld1q_u16(padded);
}

// One column of half a panel, kStep numbers in every kStep * kHalf; zeros
// behind the first `count`.
inline void
pack_column(const uint16_t* w, int count, int depth, uint16_t* packed) {
  for (int k = 0; k < depth; k += 2 * kStep) {
    uint16x8_t numbers =
        k + 2 * kStep <= count ? vld1q_u16(w + k) : load_some(w + k, count - k);
    vst1_u16(packed + k * kHalf, vget_low_u16(numbers));
    vst1_u16(packed + (k + kStep) * kHalf, vget_high_u16(numbers));
  }
}

void pack_panel(
    const uint16_t* w,
    int64_t w_stride,
    int columns,
    int taps,
    int depth,
    uint16_t* panel) {
  int padded = matrix_depth(depth);
  for (int half = 0; half < kTile; half += kHalf) {
    for (int tap = 0; tap < taps; ++tap, panel += padded * kHalf) {
      for (int c = 0; c < kHalf; ++c) {
        bool given = half + c < columns;
        const uint16_t* row = w + (given ? half + c : 0) * w_stride;
        pack_column(
            row + tap * depth, given ? depth : 0, padded, panel + c * kStep);
      }
    }
  }
}

// Half panels of the values' columns, the rows being their depth.
void pack_values(
    const uint16_t* v,
    int64_t v_stride,
    int count,
    int depth,
    uint16_t* packed) {
  auto row_at = [&](int t, int d) {
    return t < count ? vld1q_u16(v + t * v_stride + d) : vdupq_n_u16(0);
  };
  int padded = matrix_depth(count);
  for (int half = 0; half < depth; half += kHalf) {
    for (int t = 0; t < padded; t += kStep) {
      for (int d = half; d < half + kHalf; d += 8) {
        uint16x8x4_t rows = {
            {row_at(t, d),
             row_at(t + 1, d),
             row_at(t + 2, d),
             row_at(t + 3, d)}};
        vst4q_u16(packed, rows);
        packed += 8 * kStep;
      }
    }
  }
}

// What a tile multiplies: rows by a panel.
struct Operands {
  const uint16_t* x;
  int64_t row_step;
  int64_t tap_step;
  int taps;
  int depth; // of a tap
  const uint16_t* w;
  float* y;
  int64_t y_stride;
};

// Two rows of eight numbers as two operands.
struct RowPair {
  bfloat16x8_t v[2];

  static RowPair load(const uint16_t* first, const uint16_t* second) {
    uint64x2_t a = vreinterpretq_u64_u16(vld1q_u16(first));
    uint64x2_t b = vreinterpretq_u64_u16(vld1q_u16(second));
    return {
        {vreinterpretq_bf16_u64(vzip1q_u64(a, b)),
         vreinterpretq_bf16_u64(vzip2q_u64(a, b))}};
  }
};

// kRows rows, from `row` on, by half a panel. A sum adds from the first number
// of its depth to the last, four at a time.
inline void
multiply_rows(const Operands& a, int row, const uint16_t* w, float* y) {
  // Of two rows by two columns: [0, 0], [0, 1], [1, 0], [1, 1]
  float32x4_t sums[kRows / 2][kHalf / 2];
  UNROLL for (int r = 0; r < kRows / 2; ++r) {
    UNROLL for (int c = 0; c < kHalf / 2; ++c) {
      sums[r][c] = vdupq_n_f32(0.0f);
    }
  }
  for (int tap = 0; tap < a.taps; ++tap) {
    const uint16_t* x = a.x + row * a.row_step + tap * a.tap_step;
    for (int k = 0; k < a.depth; k += 2 * kStep) {
      RowPair rows[kRows / 2];
      UNROLL for (int r = 0; r < kRows / 2; ++r) {
        const uint16_t* first = x + 2 * r * a.row_step + k;
        rows[r] = RowPair::load(first, first + a.row_step);
      }
      UNROLL for (int step = 0; step < 2; ++step) {
        UNROLL for (int c = 0; c < kHalf / 2; ++c, w += 2 * kStep) {
          auto columns = vreinterpretq_bf16_u16(vld1q_u16(w));
          UNROLL for (int r = 0; r < kRows / 2; ++r) {
            sums[r][c] = vbfmmlaq_f32(sums[r][c], rows[r].v[step], columns);
          }
        }
      }
    }
  }
  UNROLL for (int r = 0; r < kRows / 2; ++r) {
    float* to = y + (row + 2 * r) * a.y_stride;
    UNROLL for (int c = 0; c < kHalf / 2; ++c) {
      vst1_f32(to + 2 * c, vget_low_f32(sums[r][c]));
      vst1_f32(to + a.y_stride + 2 * c, vget_high_f32(sums[r][c]));
    }
  }
}

// A half of the panel stays in the first-level cache for all rows.
inline void multiply(const Operands& a) {
  int64_t half_panel = int64_t(a.taps) * a.depth * kHalf;
  for (int half = 0; half < 2; ++half) {
    for (int row = 0; row < kTile; row += kRows) {
      multiply_rows(a, row, a.w + half * half_panel, a.y + half * kHalf);
    }
  }
}

void nothing() {}

void tile(const MatrixTileArgs& a) {
  multiply(
      {a.x, a.row_step, a.tap_step, a.taps, a.depth, a.w, a.y, a.y_stride});
}

void score(const MatrixAttentionArgs& a, int64_t stride) {
  for (int t = 0; t < a.count; t += kTile) {
    const uint16_t* keys = a.keys + int64_t(t) * a.depth;
    multiply({a.q, a.depth, 0, 1, a.depth, keys, a.scores + t, stride});
  }
}

void weigh_values(const MatrixAttentionArgs& a, int d, int64_t stride) {
  const uint16_t* values = a.values + d * stride;
  int keys = static_cast<int>(stride);
  multiply({a.weights, stride, 0, 1, keys, values, a.y + d, a.depth});
}

void attend(const MatrixAttentionArgs& a) {
  attend_with(a, score, weigh_values);
}

} // namespace

const MatrixLoops nightingale::cpu::matrix_loops_neon_bf16{
    .name = "neonbf16",
    .begin = nothing,
    .end = nothing,
    .tile = tile,
    .pack_panel = pack_panel,
    .unpack_panel = nullptr,
    .pack_values = pack_values,
    .queries = kTile,
    .attend = attend};
