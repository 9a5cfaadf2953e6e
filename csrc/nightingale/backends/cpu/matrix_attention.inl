// Attention of `MatrixLoops` over the vectors and the products of the file that
// includes this one, which defines
//
//   kTile: kMatrixTile
//   load_first(p, count, behind): a vector's first `count` numbers, which may
//     be none, and the others of `behind`; keep_first(x, count): zeros behind
//   store_rounded(x, p): as bfloat16
//   within_exponents(x): what coarse_exp2_vec takes the power of
//
// As in simd_loops.inl, no standard headers.

// The weights of one row, zeros behind them up to a multiple of the tile; gives
// their sum.
inline float
weigh_row(const float* scores, int count, float factor, uint16_t* weights) {
  int whole = count / Vec::width * Vec::width, rest = count - whole;
  Vec last = load_first(scores + whole, rest, Vec::set1(scores[0]));
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
  auto weight_of = [&](Vec score) {
    return coarse_exp2_vec(within_exponents(fma(score, by, shift)));
  };
  auto put = [&](Vec weight, int at) {
    sum = sum + weight;
    store_rounded(weight, weights + at);
  };
  for (i = 0; i < whole; i += Vec::width) {
    put(weight_of(Vec::load(scores + i)), i);
  }
  Vec weight = weight_of(last);
  int padded = matrix_depth(count);
  for (; i < padded; i += Vec::width, rest = 0) {
    put(keep_first(weight, rest), i);
  }
  return sum.sum();
}

// y: [depth]
inline void scale_row(float* y, int depth, Vec factor) {
  for (int d = 0; d < depth; d += Vec::width) {
    (Vec::load(y + d) * factor).store(y + d);
  }
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
    scale_row(a.y + r * a.depth, a.depth, Vec::set1(factors[r]));
  }
}
