#pragma once

#include <cstdint>

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/signal_loops.h"
#include "nightingale/ops/cache_groups.h"

// Inner loops of the CPU backend, written once over a vector type
// (simd_loops.inl) and compiled for each instruction set; `simd()` picks the
// best one this processor has. A dot product adds its terms in an order that
// depends on its length only: not on the number of rows, threads or tiles.

namespace nightingale::cpu {

// How the elements of an array are stored.
enum class Storage { f32, f16, bf16 };

constexpr int storage_bytes(Storage storage) {
  return storage == Storage::f32 ? 4 : 2;
}

// Activations of `count` elements; y may be x.
struct ActivationLoops {
  void (*silu)(const float* x, int64_t count, float* y);
  void (*gelu)(const float* x, int64_t count, float* y);
  void (*mish)(const float* x, int64_t count, float* y);
  void (*elu)(const float* x, int64_t count, float* y);
  void (*relu)(const float* x, int64_t count, float* y);
  void (*gelu_tanh)(const float* x, int64_t count, float* y);
  void (*leaky_relu)(const float* x, int64_t count, float slope, float* y);
  void (*snake)(
      const float* x,
      const float* alpha,
      const float* inverse_alpha,
      int64_t count,
      float* y);

  // One step of `count` units of an LSTM: cell = sigmoid(f) * cell +
  // sigmoid(i) * tanh(g), hidden = sigmoid(o) * tanh(cell). gates: [4, stride],
  // the sums of i, f, g and o.
  void (*lstm_cell)(
      const float* gates,
      int64_t stride,
      int64_t count,
      float* cell,
      float* hidden);
};

// What attention does to a row of scores, between its two products.
struct AttentionLoops {
  // x[i] = exp(scale * (x[i] - max)), after `more`, unless null, was added;
  // gives the sum. Both have room for whole vectors, whose rest x may lose.
  float (*exp_row)(float* x, const float* more, int count, float scale);

  void (*scale_row)(const float* x, float factor, int count, float* y);
};

// Vectors of a quantized cache (nightingale/ops/quantized_cache.h), one after
// the other. `depth` is one that ops::quantized_words takes. Every entry is
// indexed by quantized_index.
struct CacheLoops {
  void (*pack[2])(const float* x, int depth, uint32_t* row);
  void (*unpack[2])(const uint32_t* rows, int count, int depth, float* y);

  // y[t] = sum_d x[d] * rows[t, d]
  void (*dots[2])(
      const float* x,
      const uint32_t* rows,
      int count,
      int depth,
      float* y);

  // out[d] = sum_t p[t] * rows[t, d]
  void (*weighted_sum[2])(
      const float* p,
      const uint32_t* rows,
      int count,
      int depth,
      float* out);
};

// What the sums of a product go through; ops::Activation, and Snake after it.
enum class Curve {
  none,
  silu,
  gelu,
  mish,
  elu,
  leaky_relu,
  relu,
  gelu_tanh,
  snake
};

// y[r, c] = sum over t, k of x[r * row_step + t * tap_step + k] *
// w[t * depth + k, c], in this order, for all rows and columns of a tile.
template <typename T>
struct TileArgsOf {
  const T* x;
  int64_t row_step;
  int64_t tap_step;
  int taps;
  int depth;
  const T* w;
  int64_t w_stride;
  float* y;
  int64_t y_stride;
};

using TileArgs = TileArgsOf<float>;

// y = curve(sums + bias) + residual. The columns' vectors start at the first
// column of the tile; y and residual are of one type.
struct EpilogueArgs {
  const float* sums;
  int64_t sums_stride;
  int rows;
  int columns;
  const float* bias; // or null, as the residual
  Curve curve;
  const float* alpha; // of Snake
  const float* inverse_alpha;
  const void* residual;
  void* y;
  int64_t stride; // of y and residual
};

// y[c] = sum of x[t * tap_step + c] * w[t * w_stride + c] over the taps
// [first_tap, last_tap).
struct DepthwiseArgs {
  const float* x;
  int64_t tap_step;
  int first_tap;
  int last_tap;
  const float* w;
  int64_t w_stride;
  int channels;
  float* y;
};

// No processor has larger tiles.
constexpr int kMostTileRows = 14;
constexpr int kMostTileColumns = 32;

struct ProductLoops {
  int rows; // of a tile
  int columns;

  void (*tile)(const TileArgs& args);
  // The first half of the columns.
  void (*half_tile)(const TileArgs& args);

  // panel[k, c] = w[c, k], 0 in the columns of a tile that w has not; indexed
  // by Storage of w.
  void (*pack_panel[3])(
      const void* w,
      int64_t w_stride,
      int columns,
      int64_t depth,
      float* panel);

  // Indexed by Storage of y.
  void (*epilogue[3])(const EpilogueArgs& args);

  void (*depthwise)(const DepthwiseArgs& args);
};

// y[r, c] = sum_k x[r, k] * w[c, k] (+ bias[c]) (+ residual[r, c])
struct DotArgs {
  const float* x;
  int64_t x_stride; // between rows, in elements; likewise below
  int rows;
  const void* w;
  int64_t w_stride;
  int columns;
  int depth;
  const float* bias = nullptr;
  const float* residual = nullptr;
  int64_t residual_stride = 0;
  float* y;
  int64_t y_stride;
};

struct Simd {
  const char* name;

  // Indexed by Storage of w.
  void (*dots[3])(const DotArgs& args);

  // out[d] = sum_t p[t] * v[t, d]; indexed by Storage of v.
  void (*weighted_sum[3])(
      const float* p,
      int count,
      const void* v,
      int64_t v_stride,
      int depth,
      float* out);

  // Indexed by Storage of the packed side.
  void (*unpack[3])(const void* in, int64_t count, float* out);
  void (*pack[3])(const float* in, int64_t count, void* out);

  // x[i] = exp(scale * (x[i] - max)) / sum, in place.
  void (*softmax)(float* x, int count, float scale);

  void (*rms_norm)(
      const float* x,
      const float* w,
      int count,
      float eps,
      float* y);
  void (*layer_norm)(
      const float* x,
      const float* w,
      const float* b,
      int count,
      float eps,
      float* y);

  // mish(layer_norm) + shift, which may be null.
  void (*norm_mish)(
      const float* x,
      const float* w,
      const float* b,
      const float* shift,
      int count,
      float eps,
      float* y);

  // What bandwidth is measured with: a plain read from end to end, and one in
  // four streams that prefetches, as `dots` reads.
  float (*sum)(const float* x, int64_t count);
  float (*sum_streams)(const float* x, int64_t count);

  // y = silu(gate) * up
  void (*silu_mul)(const float* gate, const float* up, int64_t count, float* y);

  ActivationLoops activation;
  AttentionLoops attention;
  QuantizedLoops quantized;
  CacheLoops cache;
  ProductLoops product;
  SignalLoops signal;
};

// The table this processor runs, chosen once.
const Simd& simd();

// Every table this build and this processor have, best first, for tests.
int simd_count();
const Simd& simd_at(int index);

} // namespace nightingale::cpu
