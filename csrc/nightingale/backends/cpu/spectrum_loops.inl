// The loops behind `SignalLoops` over short spectra, part of simd_loops.inl.

constexpr int kFrameSize = 16, kFrameHop = 4, kBins = 9;

// One row of x · basis, `columns` of them kept: y[c] = sum_k x[k] * basis[k,
// c].
template <int depth, int columns, int stride>
inline void row_product(const float* x, const float* basis, float* y) {
  constexpr int vectors = (columns + Vec::width - 1) / Vec::width;
  Vec acc[vectors] = {};
  for (int k = 0; k < depth; ++k) {
    Vec xs = Vec::set1(x[k]);
    for (int v = 0; v < vectors; ++v) {
      acc[v] = fma(xs, Vec::load(basis + k * stride + v * Vec::width), acc[v]);
    }
  }
  constexpr int whole = columns / Vec::width;
  for (int v = 0; v < whole; ++v) {
    acc[v].store(y + v * Vec::width);
  }
  if constexpr (constexpr int begin = whole * Vec::width; begin < columns) {
    store_some<false>(acc[whole], y + begin, columns - begin);
  }
}

void analyse(const float* x, int frames, const float* basis, float* y) {
  for (int f = 0; f < frames; ++f) {
    row_product<kFrameSize, 2 * kBins, nightingale::cpu::kAnalysisStride>(
        x + f * kFrameHop, basis, y + f * 2 * kBins);
  }
}

void synthesise(const float* x, int frames, const float* basis, float* y) {
  for (int f = 0; f < frames; ++f) {
    row_product<2 * kBins, kFrameSize, kFrameSize>(
        x + f * 2 * kBins, basis, y + f * kFrameSize);
  }
}

// Copies the 9 bins of each frame; a stride is how far apart frames begin.
inline void
copy_bins(const float* x, int x_stride, int frames, float* y, int y_stride) {
  for (int f = 0; f < frames; ++f) {
    __builtin_memcpy(y + f * y_stride, x + f * x_stride, sizeof(float[kBins]));
  }
}

void polar(const float* x, int frames, float* y) {
  constexpr int block = 16, size = block * kBins;
  static_assert(size % Vec::width == 0);
  Vec one = Vec::set1(1.0f), half = Vec::set1(0.5f),
      loudest = Vec::set1(100.0f);
  for (int begin = 0; begin < frames; begin += block) {
    int count = frames - begin < block ? frames - begin : block;
    float first[size] = {}, second[size] = {};
    const float* from = x + int64_t(begin) * 2 * kBins;
    copy_bins(from, 2 * kBins, count, first, kBins);
    copy_bins(from + kBins, 2 * kBins, count, second, kBins);
    for (int i = 0; i < size; i += Vec::width) {
      Vec magnitude = min(loudest, exp(Vec::load(first + i)));
      Vec phase = sin_vec(Vec::load(second + i));
      Vec cosine = fma(sin_squared_vec(phase * half), Vec::set1(-2.0f), one);
      (magnitude * cosine).store(first + i);
      (magnitude * sin_vec(phase)).store(second + i);
    }
    float* to = y + int64_t(begin) * 2 * kBins;
    copy_bins(first, kBins, count, to, 2 * kBins);
    copy_bins(second, kBins, count, to + kBins, 2 * kBins);
  }
}
