// What the loops behind `MatrixLoops` have in common, over the vectors of
// AVX-512: how panels and values are packed, and the weights of attention. Part
// of the files that include it, and as free of standard headers.

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

// The queries of one head over its keys and values. score(a, stride) fills
// a.scores, weigh(a, d, stride) gives kTile columns of the values by weight.
template <typename Score, typename Weigh>
inline void
attend_with(const MatrixAttentionArgs& a, Score score, Weigh weigh) {
  int64_t stride = matrix_depth(a.count);
  score(a, stride);
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
    weigh(a, d, stride);
  }
  for (int r = 0; r < kTile; ++r) {
    Vec factor = Vec::set1(factors[r]);
    for (int d = 0; d < a.depth; d += Vec::width) {
      float* y = a.y + r * a.depth + d;
      (Vec::load(y) * factor).store(y);
    }
  }
}
