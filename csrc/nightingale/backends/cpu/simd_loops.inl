// The loops behind `Simd`, over the vector type `Vec` of the file that includes
// this one. Kept free of standard headers: inline functions compiled here with
// wide instructions must not be linked into code for older processors.

#include "nightingale/backends/cpu/simd.h"

namespace {

using nightingale::cpu::DotArgs;
using nightingale::cpu::Simd;

constexpr int kPrefetchBytes = 2048;

#include "nightingale/backends/cpu/activation_vec.inl"

// A vector of a row, or the last, partial one, zeros behind it: every element
// then takes the same arithmetic, whatever the number of rows beside it.
template <bool whole, typename T>
inline Vec load_some(const T* p, int count) {
  if constexpr (whole) {
    return Vec::load(p);
  }
  float padded[Vec::width] = {};
  for (int i = 0; i < count; ++i) {
    padded[i] = widen(p[i]);
  }
  return Vec::load(padded);
}

template <bool whole, typename T>
inline void store_some(Vec x, T* p, int count) {
  if constexpr (whole) {
    x.store(p);
    return;
  }
  float lanes[Vec::width];
  x.store(lanes);
  for (int i = 0; i < count; ++i) {
    narrow(lanes[i], p + i);
  }
}

// Calls f<whole>(i) for the vectors that begin at i, of `count` elements.
template <typename F>
inline void for_vectors(int64_t count, F f) {
  int64_t i = 0;
  for (; i + Vec::width <= count; i += Vec::width) {
    f.template operator()<true>(i);
  }
  if (i < count) {
    f.template operator()<false>(i);
  }
}

// Applies `f` to vectors of the inputs.
template <typename T, typename F, typename... In>
inline void map(int64_t count, T* y, F f, const In*... in) {
  for_vectors(count, [&]<bool whole>(int64_t i) {
    Vec result = f(load_some<whole>(in + i, count - i)...);
    store_some<whole>(result, y + i, count - i);
  });
}

constexpr auto unchanged = [](Vec x) { return x; };

template <typename T>
void unpack(const void* in, int64_t count, float* out) {
  map(count, out, unchanged, static_cast<const T*>(in));
}

template <typename T>
void pack(const float* in, int64_t count, void* out) {
  map(count, static_cast<T*>(out), unchanged, in);
}

template <int count>
struct Vectors {};

template <typename T>
inline void load_vectors(const T* p, Vec (&v)[1]) {
  v[0] = Vec::load(p);
}
inline void load_vectors(const float* p, Vec (&v)[2]) {
  v[0] = Vec::load(p);
  v[1] = Vec::load(p + Vec::width);
}
// For vector types that widen a pair faster than twice one vector. V: Vec
template <typename T, typename V>
inline void load_vectors(const T* p, V (&v)[2]) {
  V::load_pair(p, v);
}

// Dot products of R rows of x with C rows of w: every loaded vector of w serves
// all R rows, so that the guidance pair reads its weights once.
template <typename W, int R, int C>
inline void dot_block(const DotArgs& a, const float* x, int row, int column) {
  const W* w = static_cast<const W*>(a.w) + column * a.w_stride;
  Vec acc[R][C] = {};
  // The rows that come next, which the processor does not foresee by itself:
  // 20 to 50 % faster from memory (measured on Sapphire Rapids).
  int64_t ahead = C * a.w_stride;
  constexpr int64_t least = kPrefetchBytes / sizeof(W);
  ahead = ahead < least ? least : ahead;
  auto step = [&]<int count>(int k, Vectors<count>) {
    Vec xs[R][count];
    UNROLL for (int r = 0; r < R; ++r) {
      load_vectors(x + r * a.x_stride + k, xs[r]);
    }
    UNROLL for (int c = 0; c < C; ++c) {
      Vec ws[count];
      load_vectors(w + c * a.w_stride + k, ws);
      UNROLL for (int r = 0; r < R; ++r) {
        UNROLL for (int i = 0; i < count; ++i) {
          acc[r][c] = fma(xs[r][i], ws[i], acc[r][c]);
        }
      }
    }
  };
  constexpr int line = 64 / sizeof(W); // elements of w in a cache line
  // More rows leave no registers for pairs.
  constexpr int count = Vec::widens_pairs && sizeof(W) == 2 && R <= 4 ? 2 : 1;
  int k = 0;
  for (; k + line <= a.depth; k += line) {
    for (int c = 0; c < C; ++c) {
      __builtin_prefetch(w + c * a.w_stride + k + ahead);
    }
    for (int i = 0; i < line; i += count * Vec::width) {
      step(k + i, Vectors<count>{});
    }
  }
  for (; k + Vec::width <= a.depth; k += Vec::width) {
    step(k, Vectors<1>{});
  }
  if (k < a.depth) {
    for (int c = 0; c < C; ++c) {
      Vec ws = load_some<false>(w + c * a.w_stride + k, a.depth - k);
      for (int r = 0; r < R; ++r) {
        Vec xs = load_some<false>(x + r * a.x_stride + k, a.depth - k);
        acc[r][c] = fma(xs, ws, acc[r][c]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      float sum = acc[r][c].sum();
      if (a.bias) {
        sum += a.bias[column + c];
      }
      if (a.residual) {
        sum += a.residual[(row + r) * a.residual_stride + column + c];
      }
      a.y[(row + r) * a.y_stride + column + c] = sum;
    }
  }
}

template <typename W, int R>
inline void dot_rows(const DotArgs& a, int row) {
  const float* x = a.x + row * a.x_stride;
  int c = 0;
  for (; c + 4 <= a.columns; c += 4) {
    dot_block<W, R, 4>(a, x, row, c);
  }
  for (; c < a.columns; ++c) {
    dot_block<W, R, 1>(a, x, row, c);
  }
}

template <typename W>
void dots(const DotArgs& a) {
  int row = 0;
  // Large blocks as long as they leave none that is smaller than a usual one:
  // each block after the first reads the weights from a cache again.
  constexpr int large = Vec::large_row_block, usual = Vec::row_block;
  while (a.rows - row == large || a.rows - row >= large + usual) {
    dot_rows<W, large>(a, row);
    row += large;
  }
  for (; row + usual <= a.rows; row += usual) {
    dot_rows<W, usual>(a, row);
  }
  for (; row + 2 <= a.rows; row += 2) {
    dot_rows<W, 2>(a, row);
  }
  for (; row < a.rows; ++row) {
    dot_rows<W, 1>(a, row);
  }
}

template <typename V>
void weighted_sum(
    const float* p,
    int count,
    const void* values,
    int64_t v_stride,
    int depth,
    float* out) {
  constexpr int block = 4;
  const V* v = static_cast<const V*>(values);
  int d = 0;
  for (; d + block * Vec::width <= depth; d += block * Vec::width) {
    Vec acc[block] = {};
    for (int t = 0; t < count; ++t) {
      Vec weight = Vec::set1(p[t]);
      for (int i = 0; i < block; ++i) {
        const V* at = v + t * v_stride + d + i * Vec::width;
        __builtin_prefetch(at + kPrefetchBytes / sizeof(V));
        Vec value = Vec::load(at);
        acc[i] = fma(weight, value, acc[i]);
      }
    }
    for (int i = 0; i < block; ++i) {
      acc[i].store(out + d + i * Vec::width);
    }
  }
  for (; d < depth; ++d) {
    float sum = 0.0f;
    for (int t = 0; t < count; ++t) {
      sum += p[t] * widen(v[t * v_stride + d]);
    }
    out[d] = sum;
  }
}

void silu_mul(const float* gate, const float* up, int64_t count, float* y) {
  map(count, y, [](Vec g, Vec u) { return silu_vec(g) * u; }, gate, up);
}

template <typename F>
inline float sum_of(const float* x, int count, F term) {
  Vec acc = Vec::zero();
  int i = 0;
  for (; i + Vec::width <= count; i += Vec::width) {
    acc = acc + term(Vec::load(x + i));
  }
  float sum = acc.sum();
  for (; i < count; ++i) {
    float lanes[Vec::width] = {x[i]};
    term(Vec::load(lanes)).store(lanes);
    sum += lanes[0];
  }
  return sum;
}

// Adds x[i * part + k] to the i-th of four accumulators, k in steps of
// `stride`.
template <int ahead>
inline float
sum_of_four(const float* x, int64_t part, int64_t stride, int64_t end) {
  Vec acc[4] = {};
  for (int64_t k = 0; k < end; k += stride) {
    for (int i = 0; i < 4; ++i) {
      acc[i] = acc[i] + Vec::load(x + i * part + k);
      if (ahead > 0) {
        __builtin_prefetch(x + i * part + k + ahead);
      }
    }
  }
  return ((acc[0] + acc[1]) + (acc[2] + acc[3])).sum();
}

inline float sum_rest(const float* x, int64_t begin, int64_t end, float total) {
  for (int64_t k = begin; k < end; ++k) {
    total += x[k];
  }
  return total;
}

float sum(const float* x, int64_t count) {
  int64_t whole = count / (4 * Vec::width) * (4 * Vec::width);
  float total = sum_of_four<0>(x, Vec::width, 4 * Vec::width, whole);
  return sum_rest(x, whole, count, total);
}

float sum_streams(const float* x, int64_t count) {
  int64_t part = count / 4 / Vec::width * Vec::width;
  float total = sum_of_four<1024>(x, part, Vec::width, part);
  return sum_rest(x, 4 * part, count, total);
}

void softmax(float* x, int count, float scale) {
  Vec most = Vec::set1(x[0]);
  int i = 0;
  for (; i + Vec::width <= count; i += Vec::width) {
    most = max(most, Vec::load(x + i));
  }
  float top = most.max_lane();
  for (; i < count; ++i) {
    top = x[i] > top ? x[i] : top;
  }
  Vec shift = Vec::set1(top), factor = Vec::set1(scale);
  map(count, x, [=](Vec a) { return exp((a - shift) * factor); }, x);
  Vec inverse = Vec::set1(1.0f / sum_of(x, count, unchanged));
  map(count, x, [=](Vec a) { return a * inverse; }, x);
}

inline float inverse_sqrt(float x) {
  return 1.0f / __builtin_sqrtf(x);
}

void rms_norm(const float* x, const float* w, int count, float eps, float* y) {
  float mean = sum_of(x, count, [](Vec a) { return a * a; }) / count;
  Vec scale = Vec::set1(inverse_sqrt(mean + eps));
  map(count, y, [=](Vec a, Vec b) { return a * scale * b; }, x, w);
}

struct Normaliser {
  Vec center;
  Vec scale; // 1 over the deviation

  Vec operator()(Vec x, Vec w, Vec b) const {
    return (x - center) * scale * w + b;
  }
};

inline Normaliser normaliser(const float* x, int count, float eps) {
  float mean = sum_of(x, count, unchanged) / count;
  Vec center = Vec::set1(mean);
  float variance =
      sum_of(x, count, [=](Vec a) { return (a - center) * (a - center); }) /
      count;
  return {center, Vec::set1(inverse_sqrt(variance + eps))};
}

void layer_norm(
    const float* x,
    const float* w,
    const float* b,
    int count,
    float eps,
    float* y) {
  map(count, y, normaliser(x, count, eps), x, w, b);
}

void norm_mish(
    const float* x,
    const float* w,
    const float* b,
    const float* shift,
    int count,
    float eps,
    float* y) {
  auto norm = normaliser(x, count, eps);
  if (shift) {
    auto shifted = [=](Vec a, Vec c, Vec d, Vec e) {
      return mish_vec(norm(a, c, d)) + e;
    };
    map(count, y, shifted, x, w, b, shift);
  } else {
    auto plain = [=](Vec a, Vec c, Vec d) { return mish_vec(norm(a, c, d)); };
    map(count, y, plain, x, w, b);
  }
}

#include "nightingale/backends/cpu/activation_loops.inl"
#include "nightingale/backends/cpu/attention_loops.inl"
#include "nightingale/backends/cpu/cache_loops.inl"
#include "nightingale/backends/cpu/product_loops.inl"
#include "nightingale/backends/cpu/quantized_loops.inl"
#include "nightingale/backends/cpu/source_loops.inl"
#include "nightingale/backends/cpu/spectrum_loops.inl"

constexpr SignalLoops signal_loops() {
  return {analyse, synthesise, polar, harmonics, random_words, normals};
}

constexpr Simd make_simd(const char* name) {
  return Simd{
      name,
      {dots<float>, dots<f16>, dots<bf16>},
      {weighted_sum<float>, weighted_sum<f16>, weighted_sum<bf16>},
      {unpack<float>, unpack<f16>, unpack<bf16>},
      {pack<float>, pack<f16>, pack<bf16>},
      softmax,
      rms_norm,
      layer_norm,
      norm_mish,
      sum,
      sum_streams,
      silu_mul,
      activation_loops(),
      attention_loops(),
      quantized_loops(),
      cache_loops(),
      product_loops(),
      signal_loops()};
}

} // namespace
