// The loops behind `CacheLoops`, part of simd_loops.inl.

using nightingale::cpu::CacheLoops;
using nightingale::ops::kCacheGroup;
using nightingale::ops::kMostCacheGroups;

// Vec::width integers of a row from element `i`, which is a multiple of that.
template <int bits>
inline Vec quantized_at(const uint32_t* row, int i) {
  return load_quantized(reinterpret_cast<const uint8_t*>(row), i, Bits<bits>{});
}

constexpr uint32_t kNotFinite = 0x7fc0; // a scale that is NaN

struct CacheAffine {
  float scale, offset;
};

inline CacheAffine affine_of(uint32_t word) {
  return {from_bits(word << 16), from_bits(word & 0xffff0000)};
}

// The bits of the bfloat16 next to x, away from 0.
inline uint32_t outward(float x) {
  return (to_bits(x) + 0xffff) & 0xffff0000;
}

// Of the kCacheGroup floats at x.
template <int bits>
inline uint32_t affine_word(const float* x) {
  Vec least = Vec::zero(), most = Vec::zero(), finite = Vec::zero();
  for (int i = 0; i < kCacheGroup; i += Vec::width) {
    Vec part = Vec::load(x + i);
    least = min(least, part);
    most = max(most, part);
    finite = fma(part, Vec::zero(), finite); // NaN where one is not
  }
  if (finite.sum() != 0.0f) {
    return kNotFinite;
  }
  uint32_t offset = outward(-(Vec::zero() - least).max_lane());
  constexpr float last = (1 << bits) - 1;
  float scale = most.max_lane() / last - from_bits(offset) / last;
  return offset | outward(scale) >> 16;
}

template <int bits>
void pack_quantized(const float* x, int depth, uint32_t* row) {
  Vec half = Vec::set1(0.5f), last = Vec::set1((1 << bits) - 1);
  constexpr int values_in_word = 32 / bits;
  uint32_t* words = row + depth * bits / 32;
  for (int begin = 0; begin < depth; begin += kCacheGroup) {
    uint32_t word = affine_word<bits>(x + begin);
    CacheAffine affine = affine_of(word);
    Vec offset = Vec::set1(affine.offset);
    Vec scale = Vec::set1(affine.scale > 0.0f ? affine.scale : 1.0f);
    float quantized[kCacheGroup];
    for (int i = 0; i < kCacheGroup; i += Vec::width) {
      Vec part = Vec::load(x + begin + i);
      Vec level = floor((part - offset) / scale + half);
      // NaN, which is not greater, becomes 0.
      level = where_greater(level, Vec::zero(), level, Vec::zero());
      min(level, last).store(quantized + i);
    }
    for (int w = 0; w < bits; ++w) {
      uint32_t packed = 0;
      for (int i = 0; i < values_in_word; ++i) {
        auto level = static_cast<uint32_t>(quantized[w * values_in_word + i]);
        packed |= level << (i * bits);
      }
      row[begin * bits / 32 + w] = packed;
    }
    words[begin / kCacheGroup] = word;
  }
}

// Words of a vector's integers, and of all of it.
template <int bits>
inline int quantized_words(int depth) {
  return depth * bits / 32;
}
template <int bits>
inline int row_words(int depth) {
  return quantized_words<bits>(depth) + depth / kCacheGroup;
}

template <int bits>
void unpack_quantized(const uint32_t* rows, int count, int depth, float* y) {
  int coded = quantized_words<bits>(depth), words = row_words<bits>(depth);
  for (int t = 0; t < count; ++t, rows += words, y += depth) {
    for (int begin = 0; begin < depth; begin += kCacheGroup) {
      CacheAffine affine = affine_of(rows[coded + begin / kCacheGroup]);
      Vec scale = Vec::set1(affine.scale), offset = Vec::set1(affine.offset);
      for (int i = begin; i < begin + kCacheGroup; i += Vec::width) {
        fma(quantized_at<bits>(rows, i), scale, offset).store(y + i);
      }
    }
  }
}

// C positions at once: the sum of one need not wait for that of another.
// x_sums: of every kCacheGroup of x
template <int bits, int C>
inline void dot_quantized(
    const float* x,
    const uint32_t* rows,
    int depth,
    const float* x_sums,
    float* y) {
  int coded = quantized_words<bits>(depth), words = row_words<bits>(depth);
  Vec sums[C] = {};
  float offsets[C] = {};
  for (int c = 0; c < C; ++c) {
    __builtin_prefetch(rows + c * words + kPrefetchBytes / 4);
  }
  for (int g = 0; g < depth / kCacheGroup; ++g) {
    Vec acc[C] = {};
    for (int i = g * kCacheGroup; i < (g + 1) * kCacheGroup; i += Vec::width) {
      Vec part = Vec::load(x + i);
      for (int c = 0; c < C; ++c) {
        acc[c] = fma(part, quantized_at<bits>(rows + c * words, i), acc[c]);
      }
    }
    for (int c = 0; c < C; ++c) {
      CacheAffine affine = affine_of(rows[c * words + coded + g]);
      sums[c] = fma(acc[c], Vec::set1(affine.scale), sums[c]);
      offsets[c] += affine.offset * x_sums[g];
    }
  }
  for (int c = 0; c < C; ++c) {
    y[c] = sums[c].sum() + offsets[c];
  }
}

template <int bits>
void dots_quantized(
    const float* x,
    const uint32_t* rows,
    int count,
    int depth,
    float* y) {
  int words = row_words<bits>(depth), t = 0;
  float x_sums[kMostCacheGroups];
  for (int g = 0; g < depth / kCacheGroup; ++g) {
    x_sums[g] = sum_of(x + g * kCacheGroup, kCacheGroup, unchanged);
  }
  for (; t + 4 <= count; t += 4) {
    dot_quantized<bits, 4>(x, rows + t * words, depth, x_sums, y + t);
  }
  for (; t < count; ++t) {
    dot_quantized<bits, 1>(x, rows + t * words, depth, x_sums, y + t);
  }
}

// G groups of the sum, from the group `first`.
template <int bits, int G>
inline void sum_quantized(
    const float* p,
    const uint32_t* rows,
    int count,
    int depth,
    int first,
    float* out) {
  constexpr int vectors = kCacheGroup / Vec::width;
  int coded = quantized_words<bits>(depth), words = row_words<bits>(depth);
  Vec acc[G * vectors] = {};
  float offsets[G] = {};
  int begin = first * kCacheGroup;
  for (int t = 0; t < count; ++t, rows += words) {
    __builtin_prefetch(rows + kPrefetchBytes / 4);
    for (int g = 0; g < G; ++g) {
      CacheAffine affine = affine_of(rows[coded + first + g]);
      offsets[g] += p[t] * affine.offset;
      Vec weight = Vec::set1(p[t] * affine.scale);
      for (int i = g * vectors; i < (g + 1) * vectors; ++i) {
        acc[i] = fma(
            weight, quantized_at<bits>(rows, begin + i * Vec::width), acc[i]);
      }
    }
  }
  for (int i = 0; i < G * vectors; ++i) {
    (acc[i] + Vec::set1(offsets[i / vectors]))
        .store(out + begin + i * Vec::width);
  }
}

template <int bits>
void weighted_sum_quantized(
    const float* p,
    const uint32_t* rows,
    int count,
    int depth,
    float* out) {
  int groups = depth / kCacheGroup, g = 0;
  for (; g + 2 <= groups; g += 2) {
    sum_quantized<bits, 2>(p, rows, count, depth, g, out);
  }
  for (; g < groups; ++g) {
    sum_quantized<bits, 1>(p, rows, count, depth, g, out);
  }
}

constexpr CacheLoops cache_loops() {
  return {
      {pack_quantized<8>, pack_quantized<4>},
      {unpack_quantized<8>, unpack_quantized<4>},
      {dots_quantized<8>, dots_quantized<4>},
      {weighted_sum_quantized<8>, weighted_sum_quantized<4>}};
}
