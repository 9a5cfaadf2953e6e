// What the loops behind `MatrixLoops` for AVX-512 have in common: how panels
// and values are packed, and the weights of attention. Part of the files that
// include it, and as free of standard headers.

constexpr int kTile = kMatrixTile;
constexpr int kHalf = kTile / 2; // columns of a packed register
constexpr int kRegister = kHalf * kTile; // bfloat16 numbers in one

// 16 rows of w by 32 of its depth become a register of tiles: pairs of depth
// beside each other, the rows as columns.
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

// 32 rows of 16 values become such a register: pairs of rows beside each other.
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

inline Vec load_first(const float* p, int count, Vec behind) {
  __mmask16 some = (1u << count) - 1;
  return {_mm512_mask_loadu_ps(behind.v, some, p)};
}

inline Vec keep_first(Vec x, int count) {
  __mmask16 some = (1u << count) - 1;
  return {_mm512_maskz_mov_ps(some, x.v)};
}

inline void store_rounded(Vec x, uint16_t* p) {
  __m256bh rounded = _mm512_cvtneps_pbh(x.v);
  __builtin_memcpy(p, &rounded, sizeof(rounded));
}

// Flushed to zero, a power of two that is too small takes no longer than
// others.
inline Vec within_exponents(Vec x) {
  return x;
}

// While it lives, numbers below the smallest normal one become 0: without it
// the processor takes 200 ns for the powers of two of one vector that are.
class FlushedToZero {
 public:
  FlushedToZero() {
    _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON);
  }
  ~FlushedToZero() {
    _mm_setcsr(before_);
  }

 private:
  unsigned before_ = _mm_getcsr();
};

#include "nightingale/backends/cpu/matrix_attention.inl"
