// The loops behind `MatrixLoops`, in AMX instructions. As in simd_loops.inl,
// no standard headers.

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace nightingale::cpu {

extern const MatrixLoops matrix_loops_amx;

} // namespace nightingale::cpu

namespace {

using namespace nightingale::cpu;

constexpr int kTile = kMatrixTile;
constexpr int kHalf = kTile / 2; // rows of a tile register
constexpr int kRegister = kHalf * kTile; // bfloat16 numbers in one
constexpr int64_t kLine = 64; // bytes in a row of one

// What a tile register holds is 16 rows of 64 bytes in all of them.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Not a local of begin(): GCC takes the instruction to read 8 bytes of it, and
// would leave the rest unwritten.
constexpr TileConfig kConfig;

void begin() {
  _tile_loadconfig(&kConfig);
}

void end() {
  _tile_release();
}

// Registers 0 to 3: the sums of two by two; 4 and 5: x; 6 and 7: w.
inline void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void
multiply_step(const uint16_t* x, int64_t row_bytes, const uint16_t* w) {
  _tile_loadd(4, x, row_bytes);
  _tile_loadd(6, w, kLine);
  _tile_loadd(7, w + kRegister, kLine);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(
      5, reinterpret_cast<const char*>(x) + kHalf * row_bytes, row_bytes);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

inline void store_sums(float* y, int64_t stride) {
  int64_t row_bytes = stride * sizeof(float);
  _tile_stored(0, y, row_bytes);
  _tile_stored(1, y + kHalf, row_bytes);
  _tile_stored(2, y + kHalf * stride, row_bytes);
  _tile_stored(3, y + kHalf * stride + kHalf, row_bytes);
}

void tile(const MatrixTileArgs& a) {
  clear_sums();
  const uint16_t* w = a.w;
  for (int tap = 0; tap < a.taps; ++tap) {
    const uint16_t* x = a.x + tap * a.tap_step;
    for (int k = 0; k < a.depth; k += kTile) {
      multiply_step(x + k, a.row_step * sizeof(uint16_t), w);
      w += 2 * kRegister;
    }
  }
  store_sums(a.y, kTile);
}

// 16 rows of w by 32 of its depth become a tile register: pairs of depth beside
// each other, the rows as columns.
inline void pack_register(
    const uint16_t* w,
    int64_t w_stride,
    int columns,
    int depth,
    uint16_t* packed) {
  __mmask32 some = depth >= kTile ? ~__mmask32(0) : (1u << depth) - 1;
  Vec block[Vec::width];
  for (int i = 0; i < Vec::width; ++i) {
    __m512i row = _mm512_maskz_loadu_epi16(
        i < columns ? some : 0, w + (i < columns ? i : 0) * w_stride);
    block[i].v = _mm512_castsi512_ps(row);
  }
  transpose(block);
  for (int i = 0; i < Vec::width; ++i) {
    _mm512_store_ps(packed + i * kTile, block[i].v);
  }
}

void pack_panel(
    const uint16_t* w,
    int64_t w_stride,
    int columns,
    int taps,
    int depth,
    uint16_t* panel) {
  for (int tap = 0; tap < taps; ++tap) {
    for (int k = 0; k < depth; k += kTile) {
      for (int column = 0; column < kTile; column += kHalf) {
        pack_register(
            w + column * w_stride + tap * depth + k,
            w_stride,
            columns - column,
            depth - k,
            panel);
        panel += kRegister;
      }
    }
  }
}

// 32 rows of 16 values become a tile register: pairs of rows beside each other.
void pack_values(
    const uint16_t* v,
    int64_t v_stride,
    int count,
    int depth,
    uint16_t* packed) {
  auto row_at = [&](int t, int d) {
    if (t >= count) {
      return _mm512_setzero_si512();
    }
    auto* from = reinterpret_cast<const __m256i*>(v + t * v_stride + d);
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(from));
  };
  for (int t = 0; t < count; t += kTile) {
    for (int d = 0; d < depth; d += kHalf) {
      for (int i = 0; i < kHalf; ++i) {
        __m512i even = row_at(t + 2 * i, d), odd = row_at(t + 2 * i + 1, d);
        __m512i pairs = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
        _mm512_store_si512(packed + i * kTile, pairs);
      }
      packed += kRegister;
    }
  }
}

// 2^x for x up to 0, within 1e-4 of itself: finer than the weights are stored.
inline Vec coarse_exp2(Vec x) {
  Vec n = round(x), r = x - n;
  Vec p = Vec::set1(5.5171594e-2f);
  p = fma(p, r, Vec::set1(0.24261111f));
  p = fma(p, r, Vec::set1(0.69326103f));
  p = fma(p, r, Vec::set1(0.99992806f));
  return scale_by_power_of_two(p, n);
}

// The weights of one row, zeros behind them up to a multiple of the tile; gives
// their sum.
inline float
weigh_row(const float* scores, int count, float factor, uint16_t* weights) {
  int whole = count / Vec::width * Vec::width;
  __mmask16 rest = (1u << (count - whole)) - 1;
  Vec last{_mm512_mask_loadu_ps(Vec::set1(scores[0]).v, rest, scores + whole)};
  // Two maxima side by side: one alone would wait for itself.
  Vec most = last, other = last;
  int i = 0;
  for (; i + 2 * Vec::width <= whole; i += 2 * Vec::width) {
    most = max(most, Vec::load(scores + i));
    other = max(other, Vec::load(scores + i + Vec::width));
  }
  if (i < whole) {
    other = max(other, Vec::load(scores + i));
  }
  most = max(most, other);
  Vec by = Vec::set1(factor), sum = Vec::zero();
  Vec shift = Vec::set1(-factor * most.max_lane());
  auto put = [&](Vec weight, int at) {
    sum = sum + weight;
    __m256bh rounded = _mm512_cvtneps_pbh(weight.v);
    __builtin_memcpy(weights + at, &rounded, sizeof(rounded));
  };
  for (i = 0; i < whole; i += Vec::width) {
    put(coarse_exp2(fma(Vec::load(scores + i), by, shift)), i);
  }
  Vec weight = coarse_exp2(fma(last, by, shift));
  int padded = matrix_depth(count);
  for (; i < padded; i += Vec::width, rest = 0) {
    put({_mm512_maskz_mov_ps(rest, weight.v)}, i);
  }
  return sum.sum();
}

// The queries stay in registers 4 to 7 where the head is 64 deep, as it is in
// every model we know.
void score_depth_64(const MatrixAttentionArgs& a, int64_t stride) {
  int64_t row_bytes = a.depth * sizeof(uint16_t);
  _tile_loadd(4, a.q, row_bytes);
  _tile_loadd(5, a.q + kTile, row_bytes);
  _tile_loadd(6, a.q + kHalf * a.depth, row_bytes);
  _tile_loadd(7, a.q + kHalf * a.depth + kTile, row_bytes);
  const uint16_t* keys = a.keys;
  for (int t = 0; t < a.count; t += kTile) {
    for (int half = 0; half < kTile; half += kHalf, keys += kRegister) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_loadd(2, keys, kLine);
      _tile_loadd(3, keys + 2 * kRegister, kLine);
      _tile_dpbf16ps(0, 4, 2);
      _tile_dpbf16ps(1, 6, 2);
      _tile_dpbf16ps(0, 5, 3);
      _tile_dpbf16ps(1, 7, 3);
      float* y = a.scores + t + half;
      _tile_stored(0, y, stride * sizeof(float));
      _tile_stored(1, y + kHalf * stride, stride * sizeof(float));
    }
    keys += 2 * kRegister;
  }
}

void score(const MatrixAttentionArgs& a, int64_t stride) {
  const uint16_t* keys = a.keys;
  for (int t = 0; t < a.count; t += kTile) {
    clear_sums();
    for (int k = 0; k < a.depth; k += kTile, keys += 2 * kRegister) {
      multiply_step(a.q + k, a.depth * sizeof(uint16_t), keys);
    }
    store_sums(a.scores + t, stride);
  }
}

void attend(const MatrixAttentionArgs& a) {
  int64_t stride = matrix_depth(a.count);
  if (a.depth == 2 * kTile) {
    score_depth_64(a, stride);
  } else {
    score(a, stride);
  }
  float factors[kTile];
  for (int r = 0; r < kTile; ++r) {
    float sum = weigh_row(
        a.scores + r * stride,
        a.count,
        a.scale * 1.44269504088896f,
        a.weights + r * stride);
    factors[r] = 1.0f / sum;
  }
  for (int d = 0; d < a.depth; d += kTile) {
    clear_sums();
    for (int t = 0; t < a.count; t += kTile) {
      multiply_step(
          a.weights + t,
          stride * sizeof(uint16_t),
          a.values + int64_t(t) * a.depth + d * kTile);
    }
    store_sums(a.y + d, a.depth);
  }
  for (int r = 0; r < kTile; ++r) {
    Vec factor = Vec::set1(factors[r]);
    for (int d = 0; d < a.depth; d += Vec::width) {
      float* y = a.y + r * a.depth + d;
      (Vec::load(y) * factor).store(y);
    }
  }
}

} // namespace

const MatrixLoops nightingale::cpu::matrix_loops_amx{
    begin,
    end,
    tile,
    pack_panel,
    pack_values,
    attend};
