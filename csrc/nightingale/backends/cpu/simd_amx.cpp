// The loops behind `MatrixLoops`, in AMX instructions. As in simd_loops.inl,
// no standard headers.

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace nightingale::cpu {

extern const MatrixLoops matrix_loops_amx;

} // namespace nightingale::cpu

namespace {

using namespace nightingale::cpu;

#include "nightingale/backends/cpu/matrix_loops.inl"

constexpr int64_t kLine = 64; // bytes in a row of one
constexpr int kQueries = 64; // that attend takes

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

void weigh_values(const MatrixAttentionArgs& a, int d, int64_t stride) {
  clear_sums();
  for (int t = 0; t < a.count; t += kTile) {
    multiply_step(
        a.weights + t,
        stride * sizeof(uint16_t),
        a.values + int64_t(t) * a.depth + d * kTile);
  }
  store_sums(a.y + d, a.depth);
}

// Attention of heads that are 64 deep, as in every model we know: 16 queries at
// a time by kChunk keys, whose scores and weights stay in the first-level
// cache, as the keys do until all queries have met them.
constexpr int kDepth = 64;
constexpr int kChunk = 64;

// The weights of one chunk are 2^(score - shift). The shift is the first
// chunk's greatest score of the row, and is raised where another chunk has one
// that is larger by more than kMostPower: seldom, as weights of any size have
// the same precision.
constexpr float kMostPower = 60;

struct alignas(64) Group {
  float shift[kHalf]; // negative, of the scores times `factor`
  __m512 sums[kHalf]; // of the weights, for every lane

  void begin(const float* scores, int count, float factor) {
    for (int r = 0; r < kHalf; ++r) {
      shift[r] = -factor * greatest(scores + r * kChunk, count);
      sums[r] = _mm512_setzero_ps();
    }
  }

  // The weights of a chunk, whose last keys may be missing.
  void weigh(
      const float* scores,
      int count,
      float factor,
      uint16_t* weights,
      float* y) {
    __m512 before[kHalf];
    __builtin_memcpy(before, sums, sizeof(sums));
    bool fits = count >= kChunk
        ? try_weigh<true>(scores, count, factor, weights)
        : try_weigh<false>(scores, count, factor, weights);
    if (__builtin_expect(!fits, false)) {
      __builtin_memcpy(sums, before, sizeof(sums));
      raise_shifts(scores, count, factor, y);
      try_weigh<false>(scores, count, factor, weights);
    }
  }

 private:
  static Vec load_up_to(const float* p, int count) {
    return load_first(
        p,
        count < 0                ? 0
            : count < Vec::width ? count
                                 : Vec::width,
        Vec::set1(-__builtin_inff()));
  }

  static float greatest(const float* row, int count) {
    Vec most = load_up_to(row, count);
    for (int i = Vec::width; i < count; i += Vec::width) {
      most = max(most, load_up_to(row + i, count - i));
    }
    return most.max_lane();
  }

  template <bool whole>
  bool
  try_weigh(const float* scores, int count, float factor, uint16_t* weights) {
    Vec by = Vec::set1(factor), most = Vec::set1(-__builtin_inff());
#pragma GCC unroll 4
    for (int r = 0; r < kHalf; ++r) {
      Vec from = Vec::set1(shift[r]), sum{sums[r]};
      UNROLL for (int i = 0; i < kChunk; i += 2 * Vec::width) {
        const float* row = scores + r * kChunk + i;
        Vec powers[2], pair[2];
        UNROLL for (int k = 0; k < 2; ++k) {
          const float* p = row + k * Vec::width;
          Vec score =
              whole ? Vec::load(p) : load_up_to(p, count - i - k * Vec::width);
          powers[k] = fma(score, by, from);
          most = max(most, powers[k]);
          pair[k] = exp2_of_floor(powers[k]);
        }
        sum = sum + (pair[0] + pair[1]);
        __m512bh rounded = _mm512_cvtne2ps_pbh(pair[1].v, pair[0].v);
        __builtin_memcpy(weights + r * kChunk + i, &rounded, sizeof(rounded));
      }
      sums[r] = sum.v;
    }
    return _mm512_cmp_ps_mask(most.v, _mm512_set1_ps(kMostPower), _CMP_GT_OQ) ==
        0;
  }

  // Raises the shifts to the chunk's greatest scores, where those are larger,
  // and makes what was summed smaller accordingly.
  void raise_shifts(const float* scores, int count, float factor, float* y) {
    for (int r = 0; r < kHalf; ++r) {
      float power = factor * greatest(scores + r * kChunk, count) + shift[r];
      if (power > 0) {
        shift[r] -= power;
        Vec smaller = exp2_of_floor(Vec::set1(-power));
        sums[r] = _mm512_mul_ps(sums[r], smaller.v);
        scale_row(y + r * kDepth, kDepth, smaller);
      }
    }
  }

  // 2^x within 8e-5 of itself: 2^floor(x) times a polynomial of the rest.
  static Vec exp2_of_floor(Vec x) {
    constexpr int towards_minus_infinity = 9;
    Vec r{_mm512_reduce_ps(x.v, towards_minus_infinity)};
    Vec p = Vec::set1(0.07802451f);
    p = fma(p, r, Vec::set1(0.2260672f));
    p = fma(p, r, Vec::set1(0.69583351f));
    p = fma(p, r, Vec::set1(0.99992522f));
    return {_mm512_scalef_ps(p.v, x.v)}; // which takes the floor of x
  }
};

// Tile registers are not renamed: those that are loaded again are others than
// those that are about to be read.

// 16 queries, in registers 0 and 1, by a panel of keys. y: [16, kChunk]
inline void score_panel(const uint16_t* keys, float* y) {
  constexpr int64_t row_bytes = kChunk * sizeof(float);
  _tile_zero(6);
  _tile_loadd(2, keys, kLine);
  _tile_dpbf16ps(6, 0, 2);
  _tile_loadd(3, keys + 2 * kRegister, kLine);
  _tile_dpbf16ps(6, 1, 3);
  _tile_zero(7);
  _tile_loadd(4, keys + kRegister, kLine);
  _tile_dpbf16ps(7, 0, 4);
  _tile_loadd(5, keys + 3 * kRegister, kLine);
  _tile_dpbf16ps(7, 1, 5);
  _tile_stored(6, y, row_bytes);
  _tile_stored(7, y + kHalf, row_bytes);
}

// Adds kTile values by their weights to registers 0 to 3.
inline void add_values(const uint16_t* weights, const uint16_t* values) {
  _tile_loadd(4, weights, kChunk * sizeof(uint16_t));
  _tile_loadd(6, values, kLine);
  _tile_dpbf16ps(0, 4, 6);
  _tile_loadd(7, values + kRegister, kLine);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(6, values + 2 * kRegister, kLine);
  _tile_dpbf16ps(2, 4, 6);
  _tile_loadd(7, values + 3 * kRegister, kLine);
  _tile_dpbf16ps(3, 4, 7);
}

// y: [16, kDepth], what is there already where it is not the first chunk
inline void weigh_chunk(
    const uint16_t* weights,
    const uint16_t* values,
    int count,
    bool first,
    float* y) {
  constexpr int64_t row_bytes = kDepth * sizeof(float);
  if (first) {
    clear_sums();
  } else {
    _tile_loadd(0, y, row_bytes);
    _tile_loadd(1, y + kHalf, row_bytes);
    _tile_loadd(2, y + 2 * kHalf, row_bytes);
    _tile_loadd(3, y + 3 * kHalf, row_bytes);
  }
  for (int t = 0; t < count; t += kTile) {
    add_values(weights + t, values + t * kDepth);
  }
  _tile_stored(0, y, row_bytes);
  _tile_stored(1, y + kHalf, row_bytes);
  _tile_stored(2, y + 2 * kHalf, row_bytes);
  _tile_stored(3, y + 3 * kHalf, row_bytes);
}

void attend_depth_64(const MatrixAttentionArgs& a) {
  constexpr int groups = kQueries / kHalf;
  Group group[groups];
  alignas(64) float scores[kHalf * kChunk];
  alignas(64) uint16_t weights[kHalf * kChunk];
  float factor = a.scale * 1.44269504088896f;
  for (int begin = 0; begin < a.count; begin += kChunk) {
    int count = a.count - begin < kChunk ? a.count - begin : kChunk;
    const uint16_t* keys = a.keys + int64_t(begin) * kDepth;
    for (int g = 0; g < groups; ++g) {
      const uint16_t* q = a.q + g * kHalf * kDepth;
      _tile_loadd(0, q, kDepth * sizeof(uint16_t));
      _tile_loadd(1, q + kTile, kDepth * sizeof(uint16_t));
      for (int t = 0; t < count; t += kTile) {
        score_panel(keys + t * kDepth, scores + t);
      }
      if (begin == 0) {
        group[g].begin(scores, count, factor);
      }
      float* y = a.y + g * kHalf * kDepth;
      group[g].weigh(scores, count, factor, weights, y);
      const uint16_t* values = a.values + int64_t(begin) * kDepth;
      weigh_chunk(weights, values, count, begin == 0, y);
    }
  }
  for (int r = 0; r < kQueries; ++r) {
    float sum = Vec{group[r / kHalf].sums[r % kHalf]}.sum();
    scale_row(a.y + r * kDepth, kDepth, Vec::set1(1.0f / sum));
  }
}

void attend(const MatrixAttentionArgs& a) {
  FlushedToZero flushed;
  if (a.depth == kDepth) {
    attend_depth_64(a);
    return;
  }
  for (int first = 0; first < kQueries; first += kTile) {
    MatrixAttentionArgs strip = a;
    strip.q += first * a.depth;
    strip.y += first * a.depth;
    attend_with(strip, score, weigh_values);
  }
}

} // namespace

const MatrixLoops nightingale::cpu::matrix_loops_amx{
    .name = "amx",
    .begin = begin,
    .end = end,
    .tile = tile,
    .pack_panel = pack_panel,
    .unpack_panel = unpack_panel,
    .pack_values = pack_values,
    .queries = kQueries,
    .attend = attend};
