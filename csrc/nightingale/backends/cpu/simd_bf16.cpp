// The loops behind `MatrixLoops` for processors that multiply and add pairs of
// bfloat16 numbers in vectors: AVX-512's BF16, without AMX. As in
// simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace nightingale::cpu {

extern const MatrixLoops matrix_loops_bf16;

} // namespace nightingale::cpu

namespace {

using namespace nightingale::cpu;

#include "nightingale/backends/cpu/matrix_loops.inl"

// Rows of a tile in three blocks of about the same size, whose sums stay in
// registers.
constexpr int kRows[3] = {11, 11, 10};

inline __m512bh load_pairs(const uint16_t* p) {
  __m512bh pairs;
  __builtin_memcpy(&pairs, p, sizeof(pairs));
  return pairs;
}

inline __m512bh repeat_pair(const uint16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  __m512i all = _mm512_set1_epi32(pair);
  return reinterpret_cast<__m512bh>(all);
}

// What a tile multiplies: kTile numbers of each row's depth at a time by two
// registers of w, `w_step` numbers further on each time.
struct Operands {
  const uint16_t* x;
  int64_t row_step;
  int64_t tap_step;
  int taps;
  int depth; // of a tap
  const uint16_t* w;
  int64_t w_step;
  float* y;
  int64_t y_stride;
};

template <int R>
inline void multiply_rows(const Operands& a, int row) {
  __m512 sums[R][2];
  UNROLL for (int r = 0; r < R; ++r) {
    sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  }
  const uint16_t* w = a.w;
  for (int tap = 0; tap < a.taps; ++tap) {
    const uint16_t* x = a.x + row * a.row_step + tap * a.tap_step;
    for (int k = 0; k < a.depth; k += kTile, w += a.w_step) {
      for (int i = 0; i < kTile; i += 2) {
        __m512bh first = load_pairs(w + i * kHalf);
        __m512bh second = load_pairs(w + i * kHalf + kRegister);
        UNROLL for (int r = 0; r < R; ++r) {
          __m512bh pair = repeat_pair(x + r * a.row_step + k + i);
          sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pair, first);
          sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pair, second);
        }
      }
    }
  }
  UNROLL for (int r = 0; r < R; ++r) {
    float* y = a.y + (row + r) * a.y_stride;
    _mm512_storeu_ps(y, sums[r][0]);
    _mm512_storeu_ps(y + kHalf, sums[r][1]);
  }
}

inline void multiply(const Operands& a) {
  static_assert(kRows[0] + kRows[1] + kRows[2] == kTile);
  multiply_rows<kRows[0]>(a, 0);
  multiply_rows<kRows[1]>(a, kRows[0]);
  multiply_rows<kRows[2]>(a, kRows[0] + kRows[1]);
}

void nothing() {}

void tile(const MatrixTileArgs& a) {
  multiply(
      {a.x,
       a.row_step,
       a.tap_step,
       a.taps,
       a.depth,
       a.w,
       2 * kRegister,
       a.y,
       kTile});
}

void score(const MatrixAttentionArgs& a, int64_t stride) {
  for (int t = 0; t < a.count; t += kTile) {
    const uint16_t* keys = a.keys + int64_t(t) * a.depth;
    float* y = a.scores + t;
    multiply({a.q, a.depth, 0, 1, a.depth, keys, 2 * kRegister, y, stride});
  }
}

void weigh_values(const MatrixAttentionArgs& a, int d, int64_t stride) {
  const uint16_t* values = a.values + d * kTile;
  int64_t step = int64_t(a.depth) * kTile;
  int keys = static_cast<int>(stride);
  multiply({a.weights, stride, 0, 1, keys, values, step, a.y + d, a.depth});
}

void attend(const MatrixAttentionArgs& a) {
  FlushedToZero flushed;
  attend_with(a, score, weigh_values);
}

} // namespace

const MatrixLoops nightingale::cpu::matrix_loops_bf16{
    .name = "avx512bf16",
    .begin = nothing,
    .end = nothing,
    .tile = tile,
    .pack_panel = pack_panel,
    .unpack_panel = unpack_panel,
    .pack_values = pack_values,
    .queries = kTile,
    .attend = attend};
