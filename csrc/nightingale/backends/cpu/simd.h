#pragma once

#include <cstdint>

#include "nightingale/backends/cpu/activation_loops.h"
#include "nightingale/backends/cpu/attention_loops.h"
#include "nightingale/backends/cpu/cache_loops.h"
#include "nightingale/backends/cpu/product_loops.h"
#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/signal_loops.h"
#include "nightingale/backends/cpu/storage.h"

// Inner loops of the CPU backend, written once over a vector type
// (simd_loops.inl) and compiled for each instruction set; `simd()` picks the
// best one this processor has. A dot product adds its terms in an order that
// depends on its length only: not on the number of rows, threads or tiles.

namespace nightingale::cpu {

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
