// The loops behind `ProductLoops`, part of simd_loops.inl.

using nightingale::cpu::Curve;
using nightingale::cpu::DepthwiseArgs;
using nightingale::cpu::EpilogueArgs;
using nightingale::cpu::ProductLoops;
using nightingale::cpu::TileArgs;

constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * Vec::width;
static_assert(Vec::tile_rows <= nightingale::cpu::kMostTileRows);
static_assert(kTileColumns <= nightingale::cpu::kMostTileColumns);

template <int V>
void product_tile(const TileArgs& a) {
  constexpr int R = Vec::tile_rows;
  Vec acc[R][V] = {};
  const float* w = a.w;
  // Taps that lie behind each other are one.
  bool one_run = a.tap_step == a.depth;
  int taps = one_run ? 1 : a.taps;
  int64_t depth = one_run ? int64_t(a.taps) * a.depth : a.depth;
  for (int tap = 0; tap < taps; ++tap) {
    const float* x = a.x + tap * a.tap_step;
    for (int64_t k = 0; k < depth; ++k) {
      Vec ws[V];
      UNROLL for (int v = 0; v < V; ++v) {
        ws[v] = Vec::load(w + v * Vec::width);
      }
      w += a.w_stride;
      UNROLL for (int r = 0; r < R; ++r) {
        Vec xs = Vec::set1(x[r * a.row_step + k]);
        UNROLL for (int v = 0; v < V; ++v) {
          acc[r][v] = fma(xs, ws[v], acc[r][v]);
        }
      }
    }
  }
  UNROLL for (int r = 0; r < R; ++r) {
    UNROLL for (int v = 0; v < V; ++v) {
      acc[r][v].store(a.y + r * a.y_stride + v * Vec::width);
    }
  }
}

template <typename W>
void pack_panel(
    const void* weights,
    int64_t w_stride,
    int columns,
    int64_t depth,
    float* panel) {
  const W* w = static_cast<const W*>(weights);
  for (int first = 0; first < kTileColumns; first += Vec::width) {
    for (int64_t k = 0; k < depth; k += Vec::width) {
      int64_t count = depth - k < Vec::width ? depth - k : Vec::width;
      Vec block[Vec::width];
      for (int i = 0; i < Vec::width; ++i) {
        const W* from = w + (first + i) * w_stride + k;
        __builtin_prefetch(from + kPrefetchBytes / 4 / sizeof(W));
        block[i] = first + i >= columns ? Vec::zero()
            : count == Vec::width       ? Vec::load(from)
                                        : load_some<false>(from, count);
      }
      transpose(block);
      for (int64_t i = 0; i < count; ++i) {
        block[i].store(panel + (k + i) * kTileColumns + first);
      }
    }
  }
}

// The columns of one vector, in all rows.
template <bool whole, typename T, typename F>
inline void epilogue_columns(const EpilogueArgs& a, int column, F make_curve) {
  int count = a.columns - column;
  auto at_columns = [&](const float* p) {
    return load_some<whole>(p + column, count);
  };
  Vec bias = a.bias ? at_columns(a.bias) : Vec::zero();
  auto curve = make_curve(at_columns);
  for (int row = 0; row < a.rows; ++row) {
    Vec x = curve(at_columns(a.sums + row * a.sums_stride) + bias);
    int64_t at = row * a.stride + column;
    if (a.residual) {
      const T* residual = static_cast<const T*>(a.residual) + at;
      x = load_some<whole>(residual, count) + x;
    }
    store_some<whole>(x, static_cast<T*>(a.y) + at, count);
  }
}

// make_curve(at_columns) gives the curve of some columns, where at_columns(p)
// loads theirs of a parameter.
template <typename T, typename F>
inline void epilogue_all(const EpilogueArgs& a, F make_curve) {
  for_vectors(a.columns, [&]<bool whole>(int64_t column) {
    epilogue_columns<whole, T>(a, column, make_curve);
  });
}

template <typename T, auto curve>
inline void apply_each(const EpilogueArgs& a) {
  epilogue_all<T>(a, [](auto) { return [](Vec x) { return curve(x); }; });
}

inline Vec leaky_relu_vec(Vec x) {
  return leaky_vec(x, Vec::set1(0.01f));
}

template <typename T>
void epilogue(const EpilogueArgs& a) {
  switch (a.curve) {
    case Curve::none:
      return epilogue_all<T>(a, [](auto) { return unchanged; });
    case Curve::silu:
      return apply_each<T, silu_vec>(a);
    case Curve::gelu:
      if constexpr (__is_same(T, bf16)) {
        return apply_each<T, gelu_bf16_vec>(a);
      }
      return apply_each<T, gelu_vec>(a);
    case Curve::mish:
      return apply_each<T, mish_vec>(a);
    case Curve::elu:
      return apply_each<T, elu_vec>(a);
    case Curve::leaky_relu:
      return apply_each<T, leaky_relu_vec>(a);
    case Curve::relu:
      return apply_each<T, above_zero>(a);
    case Curve::gelu_tanh:
      return apply_each<T, gelu_tanh_vec>(a);
    case Curve::snake:
      return epilogue_all<T>(a, [&](auto at_columns) {
        Vec alpha = at_columns(a.alpha), inverse = at_columns(a.inverse_alpha);
        return [=](Vec x) { return snake_vec(x, alpha, inverse); };
      });
  }
}

void depthwise(const DepthwiseArgs& a) {
  for_vectors(a.channels, [&]<bool whole>(int64_t channel) {
    int count = a.channels - channel;
    Vec acc = Vec::zero();
    for (int tap = a.first_tap; tap < a.last_tap; ++tap) {
      Vec x = load_some<whole>(a.x + tap * a.tap_step + channel, count);
      Vec w = load_some<whole>(a.w + tap * a.w_stride + channel, count);
      acc = fma(x, w, acc);
    }
    store_some<whole>(acc, a.y + channel, count);
  });
}

constexpr ProductLoops product_loops() {
  return {
      Vec::tile_rows,
      kTileColumns,
      product_tile<kTileVectors>,
      product_tile<kTileVectors / 2>,
      {pack_panel<float>, pack_panel<f16>, pack_panel<bf16>},
      {epilogue<float>, epilogue<f16>, epilogue<bf16>},
      depthwise};
}
