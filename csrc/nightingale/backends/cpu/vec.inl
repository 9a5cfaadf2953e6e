// What the vector types have in common, written with the compiler's own
// vectors. Included by the vector headers behind `Vec`, inside their namespace.

// Arrays of vectors live in registers only where every index is known.
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

using Words = uint32_t __attribute__((vector_size(4 * Vec::width)));
using SignedWords = int32_t __attribute__((vector_size(4 * Vec::width)));
using Halves = uint16_t __attribute__((vector_size(2 * Vec::width)));
using HalfPairs = uint16_t __attribute__((vector_size(4 * Vec::width)));

inline Vec operator+(Vec a, Vec b) {
  return {a.v + b.v};
}
inline Vec operator-(Vec a, Vec b) {
  return {a.v - b.v};
}
inline Vec operator*(Vec a, Vec b) {
  return {a.v * b.v};
}
inline Vec operator/(Vec a, Vec b) {
  return {a.v / b.v};
}

// 1 / x within 2 ulp, for normal numbers; a vector type may have a faster one.
template <typename V>
inline V reciprocal(V x) {
  return V::set1(1.0f) / x;
}

// Rounded once on every processor.
template <typename V>
inline V fma_once(V a, V b, V c) {
  return fma(a, b, c);
}

// x = mantissa * 2^exponent, for positive normal numbers; mantissa in [1, 2).
struct Split {
  Vec mantissa, exponent;
};

// As narrow() of every lane, but that the instruction takes numbers below the
// smallest normal one as 0.
inline void Vec::store(bf16* p) const {
#if defined(__AVX512BF16__)
  __m256bh upper = _mm512_cvtneps_pbh(v);
#else
  Words bits;
  __builtin_memcpy(&bits, &v, sizeof(bits));
  auto magnitude = reinterpret_cast<SignedWords>(bits & 0x7fffffff);
  auto nan = reinterpret_cast<Words>(magnitude > 0x7f800000);
  Words rounded = bits + ((bits >> 16 & 1) + 0x7fff);
  Words result = ((bits | 0x400000) & nan) | (rounded & ~nan);
  Halves upper = __builtin_convertvector(result >> 16, Halves);
#endif
  __builtin_memcpy(p, &upper, sizeof(upper));
}

// Two integers of 16 bits for each lane of a Vec.
struct Pairs {
  HalfPairs v;

  static Pairs load(const uint8_t* p) {
    Pairs pairs;
    __builtin_memcpy(&pairs, p, sizeof(pairs));
    return pairs;
  }
  static Pairs set1(const int16_t* pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, sizeof(both));
    return {reinterpret_cast<HalfPairs>(SignedWords{} + both)};
  }
  template <uint16_t shift, uint16_t mask>
  Pairs bits() const {
    if constexpr (mask == 0xffff >> shift) {
      return {v >> shift}; // all that is left
    }
    return {v >> shift & mask};
  }
};

// Sums of products of pairs, exact as long as they fit in 32 bits.
struct PairSums {
  SignedWords v[Vec::pair_sums] = {};

  void add(PairSums other) {
    for (int i = 0; i < Vec::pair_sums; ++i) {
      v[i] += other.v[i];
    }
  }
  void add_products(Pairs a, Pairs b);
  Vec floats() const;
};
