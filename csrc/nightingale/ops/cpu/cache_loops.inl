// The loops behind `CacheLoops`, part of simd_loops.inl.

using nightingale::cpu::CacheLoops;

// Vec::width codes of a row from element `i`, which is a multiple of that.
template <int bits>
inline Vec codes_at(const uint32_t* row, int i) {
  return load_codes(reinterpret_cast<const uint8_t*>(row), i, Bits<bits>{});
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

template <int bits>
inline uint32_t affine_word(const float* x, int depth) {
  Vec least = Vec::zero(), most = Vec::zero(), finite = Vec::zero();
  for (int i = 0; i < depth; i += Vec::width) {
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
void pack_codes(const float* x, int depth, uint32_t* row) {
  uint32_t word = affine_word<bits>(x, depth);
  CacheAffine affine = affine_of(word);
  Vec offset = Vec::set1(affine.offset), half = Vec::set1(0.5f);
  Vec scale = Vec::set1(affine.scale > 0.0f ? affine.scale : 1.0f);
  Vec last = Vec::set1((1 << bits) - 1);
  constexpr int codes_in_word = 32 / bits;
  for (int begin = 0; begin < depth; begin += 32) {
    float codes[32];
    for (int i = 0; i < 32; i += Vec::width) {
      Vec part = Vec::load(x + begin + i);
      Vec code = floor((part - offset) / scale + half);
      // NaN, which is not greater, becomes 0.
      code = where_greater(code, Vec::zero(), code, Vec::zero());
      min(code, last).store(codes + i);
    }
    for (int w = 0; w < bits; ++w) {
      uint32_t packed = 0;
      for (int i = 0; i < codes_in_word; ++i) {
        auto code = static_cast<uint32_t>(codes[w * codes_in_word + i]);
        packed |= code << (i * bits);
      }
      row[begin * bits / 32 + w] = packed;
    }
  }
  row[depth * bits / 32] = word;
}

template <int bits>
void unpack_codes(const uint32_t* rows, int count, int depth, float* y) {
  int words = depth * bits / 32;
  for (int t = 0; t < count; ++t, rows += words + 1, y += depth) {
    CacheAffine affine = affine_of(rows[words]);
    Vec scale = Vec::set1(affine.scale), offset = Vec::set1(affine.offset);
    for (int i = 0; i < depth; i += Vec::width) {
      fma(codes_at<bits>(rows, i), scale, offset).store(y + i);
    }
  }
}

// C positions at once: the sum of one need not wait for that of another.
template <int bits, int C>
inline void dot_codes(
    const float* x,
    const uint32_t* rows,
    int words,
    float x_sum,
    float* y) {
  int depth = words * 32 / bits;
  Vec acc[C];
  for (int c = 0; c < C; ++c) {
    acc[c] = Vec::zero();
    __builtin_prefetch(rows + c * (words + 1) + kPrefetchBytes / 4);
  }
  for (int i = 0; i < depth; i += Vec::width) {
    Vec part = Vec::load(x + i);
    for (int c = 0; c < C; ++c) {
      acc[c] = fma(part, codes_at<bits>(rows + c * (words + 1), i), acc[c]);
    }
  }
  for (int c = 0; c < C; ++c) {
    CacheAffine affine = affine_of(rows[c * (words + 1) + words]);
    y[c] = affine.scale * acc[c].sum() + affine.offset * x_sum;
  }
}

template <int bits>
void dots_codes(
    const float* x,
    const uint32_t* rows,
    int count,
    int depth,
    float* y) {
  int words = depth * bits / 32, t = 0;
  float x_sum = sum_of(x, depth, [](Vec a) { return a; });
  for (; t + 4 <= count; t += 4) {
    dot_codes<bits, 4>(x, rows + t * (words + 1), words, x_sum, y + t);
  }
  for (; t < count; ++t) {
    dot_codes<bits, 1>(x, rows + t * (words + 1), words, x_sum, y + t);
  }
}

// `block` vectors of the sum, from channel d.
template <int bits, int block>
inline void sum_codes(
    const float* p,
    const uint32_t* rows,
    int count,
    int words,
    int d,
    float offsets,
    float* out) {
  Vec acc[block];
  for (int i = 0; i < block; ++i) {
    acc[i] = Vec::zero();
  }
  for (int t = 0; t < count; ++t, rows += words + 1) {
    Vec weight = Vec::set1(p[t]);
    __builtin_prefetch(rows + kPrefetchBytes / 4);
    for (int i = 0; i < block; ++i) {
      acc[i] = fma(weight, codes_at<bits>(rows, d + i * Vec::width), acc[i]);
    }
  }
  for (int i = 0; i < block; ++i) {
    (acc[i] + Vec::set1(offsets)).store(out + d + i * Vec::width);
  }
}

template <int bits>
void weighted_sum_codes(
    float* p,
    const uint32_t* rows,
    int count,
    int depth,
    float* out) {
  constexpr int block = 4;
  int words = depth * bits / 32, d = 0;
  float offsets = 0.0f;
  for (int t = 0; t < count; ++t) {
    CacheAffine affine = affine_of(rows[t * (words + 1) + words]);
    offsets += p[t] * affine.offset;
    p[t] *= affine.scale;
  }
  for (; d + block * Vec::width <= depth; d += block * Vec::width) {
    sum_codes<bits, block>(p, rows, count, words, d, offsets, out);
  }
  for (; d < depth; d += Vec::width) {
    sum_codes<bits, 1>(p, rows, count, words, d, offsets, out);
  }
}

constexpr CacheLoops cache_loops() {
  return {
      {pack_codes<8>, pack_codes<4>},
      {unpack_codes<8>, unpack_codes<4>},
      {dots_codes<8>, dots_codes<4>},
      {weighted_sum_codes<8>, weighted_sum_codes<4>}};
}
