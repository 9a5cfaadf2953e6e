// The quantized loops for processors that multiply and add 16-bit integers, or
// four bytes, in one instruction. As in simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace {

#include "nightingale/backends/cpu/quantized_loops.inl"

// Rows of 8 bits, whose totals are not needed: weights have no sign here.
void order_bytes(const int16_t* integers, int groups, int8_t* bytes, int32_t*) {
  const __m512i order =
      _mm512_set4_epi32(0x0f0d0e0c, 0x0b090a08, 0x07050604, 0x03010200);
  for (int g = 0; g < groups; ++g) {
    __m256i low = _mm512_cvtepi16_epi8(_mm512_loadu_si512(integers));
    __m256i high = _mm512_cvtepi16_epi8(
        _mm512_loadu_si512(integers + kQuantizedGroup / 2));
    __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    _mm512_storeu_si512(bytes, _mm512_shuffle_epi8(all, order));
    integers += kQuantizedGroup;
    bytes += kQuantizedGroup;
  }
}

template <int digits, int bits, int R, int P>
struct ByteSums {
  static_assert(digits == 1);
  __m512i v[R][P];

  static ByteSums of(const uint8_t* group, const int8_t* x, int64_t stride) {
    ByteSums sums;
    UNROLL for (int r = 0; r < R; ++r) {
      UNROLL for (int p = 0; p < P; ++p) {
        sums.v[r][p] = _mm512_setzero_si512();
      }
    }
    constexpr int columns = kQuantizedGroup * bits / 8;
    constexpr int block = 4 * kQuantizedTile; // bytes of four columns
    UNROLL for (int k = 0; k < columns; k += 4) {
      __m512i w[P], high[P];
      UNROLL for (int p = 0; p < P; ++p) {
        w[p] = _mm512_loadu_si512(group + k / 4 * block + 64 * p);
        if constexpr (bits == 4) {
          const __m512i mask = _mm512_set1_epi8(0xf);
          high[p] = _mm512_and_si512(_mm512_srli_epi16(w[p], 4), mask);
          w[p] = _mm512_and_si512(w[p], mask);
        }
      }
      UNROLL for (int r = 0; r < R; ++r) {
        const int8_t* row = x + r * stride + k;
        UNROLL for (int p = 0; p < P; ++p) {
          sums.v[r][p] = dot(sums.v[r][p], w[p], row);
          if constexpr (bits == 4) {
            sums.v[r][p] = dot(sums.v[r][p], high[p], row + columns);
          }
        }
      }
    }
    return sums;
  }

  // Four columns of a row by those of each lane.
  static __m512i dot(__m512i sum, __m512i w, const int8_t* row) {
    int four;
    __builtin_memcpy(&four, row, sizeof(four));
    return _mm512_dpbusd_epi32(sum, w, _mm512_set1_epi32(four));
  }

  Vec floats(int r, int p, const int32_t*) const {
    return {_mm512_cvtepi32_ps(v[r][p])};
  }
};

template <int digits>
constexpr int kMostByteRows = 10; // by 2 vectors: 20 of 32 registers

template <int digits, int R>
constexpr int kByteParts = 2;

#include "nightingale/backends/cpu/quantized_bytes.inl"

} // namespace

namespace nightingale::cpu {

extern const QuantizedLoops quantized_loops_vnni;
const QuantizedLoops quantized_loops_vnni = {
    encode,
    to_integers,
    {nullptr, order_bytes},
    {{quantized_tile<8>, quantized_tile<4>},
     {byte_tile<1, 8>, byte_tile<1, 4>}}};

} // namespace nightingale::cpu
