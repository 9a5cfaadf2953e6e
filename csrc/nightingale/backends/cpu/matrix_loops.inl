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

// The scales and biases of half a tile in one group.
struct GroupScales {
  Vec scale, bias;

  GroupScales(const uint8_t* scales, int half) {
    auto* at = reinterpret_cast<const f16*>(scales) + half * kHalf;
    scale = Vec::load(at);
    bias = Vec::load(at + kQuantizedTile);
  }

  // The values of one column in the lower byte of every lane.
  Vec operator()(__m512i words) const {
    const __m512i byte = _mm512_set1_epi32(0xff);
    __m512i levels = _mm512_and_si512(words, byte);
    return scale * Vec{_mm512_cvtepi32_ps(levels)} + bias;
  }
};

// Two columns of 16 rows, beside each other.
inline void store_pair(Vec first, Vec second, uint16_t* packed) {
  const __m512i order = _mm512_set_epi16(
      31,
      15,
      30,
      14,
      29,
      13,
      28,
      12,
      27,
      11,
      26,
      10,
      25,
      9,
      24,
      8,
      23,
      7,
      22,
      6,
      21,
      5,
      20,
      4,
      19,
      3,
      18,
      2,
      17,
      1,
      16,
      0);
  __m512bh both = _mm512_cvtne2ps_pbh(second.v, first.v);
  __m512i columns;
  __builtin_memcpy(&columns, &both, sizeof(columns));
  _mm512_store_si512(packed, _mm512_permutexvar_epi16(order, columns));
}

// 32 columns of 16 rows, four to a block, become a register.
inline void unpack_register(
    const uint8_t* blocks,
    int shift,
    int mask,
    const GroupScales& values,
    uint16_t* packed) {
  const __m512i levels = _mm512_set1_epi8(static_cast<char>(mask));
  for (int block = 0; block < kTile / 4; ++block) {
    __m512i words = _mm512_loadu_si512(blocks + block * 4 * kQuantizedTile);
    words = _mm512_and_si512(_mm512_srli_epi16(words, shift), levels);
    auto column = [&](int byte) {
      return values(_mm512_srli_epi32(words, 8 * byte));
    };
    static_assert(kQuantizedOrder[1] == 2 && kQuantizedOrder[2] == 1);
    store_pair(column(0), column(2), packed);
    store_pair(column(1), column(3), packed + kTile);
    packed += 2 * kTile;
  }
}

void unpack_panel(const uint8_t* tile, int groups, int bits, uint16_t* panel) {
  static_assert(kQuantizedGroup == 2 * kTile);
  int step = bits == 8 ? quantized_bytes(8) / 2 : 0; // between halves
  for (int g = 0; g < groups; ++g, tile += quantized_group_bytes(bits)) {
    for (int part = 0; part < 2; ++part) {
      for (int half = 0; half < 2; ++half, panel += kRegister) {
        unpack_register(
            tile + part * step + half * 4 * kHalf,
            bits == 8 ? 0 : 4 * part,
            bits == 8 ? 0xff : 0xf,
            GroupScales(tile + quantized_bytes(bits), half),
            panel);
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
