#pragma once

#include <cstdint>

#include "nightingale/backends/cpu/storage.h"

// The inner loops of products of many rows; product.h puts them together.

namespace nightingale::cpu {

// What the sums of a product go through; ops::Activation, and Snake after it.
enum class Curve { none, silu, gelu, mish, elu, leaky_relu, relu, snake };

// y[r, c] = sum over t, k of x[r * row_step + t * tap_step + k] *
// w[t * depth + k, c], in this order, for all rows and columns of a tile.
struct TileArgs {
  const float* x;
  int64_t row_step;
  int64_t tap_step;
  int taps;
  int depth;
  const float* w;
  int64_t w_stride;
  float* y;
  int64_t y_stride;
};

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

} // namespace nightingale::cpu
