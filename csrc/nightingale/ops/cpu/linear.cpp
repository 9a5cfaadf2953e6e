#include <algorithm>
#include <cstring>

#include "nightingale/ops/cpu/blas.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/row_tiles.h"
#include "nightingale/ops/cpu/scratch.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

// Tiles are fixed by the shapes, whatever the thread count.
constexpr int kDotColumns = 16;
constexpr int kGemmRows = 256;
constexpr int kGemmColumns = 256;

struct UnpackedWeights;
struct NormedRows;
struct GateAndUp;

int tiles_of(int count, int tile) {
  return (count + tile - 1) / tile;
}

// The part of `whole` that makes columns [begin, begin + count).
DotArgs
columns_of(const DotArgs& whole, Storage storage, int begin, int count) {
  DotArgs a = whole;
  a.columns = count;
  a.w = static_cast<const char*>(whole.w) +
      begin * whole.w_stride * storage_bytes(storage);
  a.bias = whole.bias ? whole.bias + begin : nullptr;
  a.residual = whole.residual ? whole.residual + begin : nullptr;
  a.y = whole.y + begin;
  return a;
}

void few_rows(const DotArgs& whole, Storage storage) {
  auto dots = simd().dots[static_cast<int>(storage)];
  constexpr int size = kDotColumns;
  parallel_for(tiles_of(whole.columns, size), [&](int tile) {
    int begin = tile * size, count = std::min(size, whole.columns - begin);
    dots(columns_of(whole, storage, begin, count));
  });
}

// silu(gate) * up of few rows: each tile makes both halves of its columns, so
// that they are combined while they are near. whole.columns: 2F; y: [rows, F]
void few_rows_swiglu(const DotArgs& whole, Storage storage) {
  auto dots = simd().dots[static_cast<int>(storage)];
  constexpr int size = kDotColumns;
  int features = whole.columns / 2;
  parallel_for(tiles_of(features, size), [&](int tile) {
    int begin = tile * size, count = std::min(size, features - begin);
    float* gate = scratch<GateAndUp>(2 * whole.rows * count);
    float* up = gate + whole.rows * count;
    DotArgs a = columns_of(whole, storage, begin, count);
    a.y = gate;
    a.y_stride = count;
    dots(a);
    a = columns_of(whole, storage, features + begin, count);
    a.y = up;
    a.y_stride = count;
    dots(a);
    for (int row = 0; row < whole.rows; ++row) {
      simd().silu_mul(
          gate + row * count,
          up + row * count,
          count,
          whole.y + row * whole.y_stride + begin);
    }
  });
}

// Puts what the product is added to into the tile of y.
void start_tile(const DotArgs& a, int row, int rows, int column, int columns) {
  for (int r = row; r < row + rows; ++r) {
    float* y = a.y + r * a.y_stride + column;
    if (a.residual) {
      const float* from = a.residual + r * a.residual_stride + column;
      std::memcpy(y, from, columns * sizeof(float));
    }
    if (a.bias && a.residual) {
      for (int c = 0; c < columns; ++c) {
        y[c] += a.bias[column + c];
      }
    } else if (a.bias) {
      std::memcpy(y, a.bias + column, columns * sizeof(float));
    }
  }
}

void many_rows(const DotArgs& a, Storage storage) {
  int column_tiles = tiles_of(a.columns, kGemmColumns);
  parallel_for(column_tiles, [&](int tile) {
    int column = tile * kGemmColumns;
    int columns = std::min(kGemmColumns, a.columns - column);
    const char* stored = static_cast<const char*>(a.w) +
        column * a.w_stride * storage_bytes(storage);
    const float* w = reinterpret_cast<const float*>(stored);
    if (storage != Storage::f32) {
      int64_t count = columns * a.w_stride;
      float* unpacked = scratch<UnpackedWeights>(count);
      simd().unpack[static_cast<int>(storage)](stored, count, unpacked);
      w = unpacked;
    }
    for (int row = 0; row < a.rows; row += kGemmRows) {
      int rows = std::min(kGemmRows, a.rows - row);
      start_tile(a, row, rows, column, columns);
      gemm(
          rows,
          columns,
          a.depth,
          1.0f,
          a.x + row * a.x_stride,
          a.x_stride,
          w,
          a.w_stride,
          Layout::transposed,
          a.bias || a.residual ? 1.0f : 0.0f,
          a.y + row * a.y_stride + column,
          a.y_stride);
    }
  });
}

void any_rows(const DotArgs& a, Storage storage) {
  if (a.rows <= kDotRows) {
    few_rows(a, storage);
  } else {
    many_rows(a, storage);
  }
}

// x · wᵀ into y, all row-contiguous.
DotArgs dots_of(const float* x, int rows, const mx::array& w, mx::array& y) {
  DotArgs a;
  a.depth = w.shape(1);
  a.x = x;
  a.x_stride = a.depth;
  a.rows = rows;
  a.w = w.data<void>();
  a.w_stride = a.depth;
  a.columns = w.shape(0);
  a.y = y.data<float>();
  a.y_stride = y.shape(-1);
  return a;
}

// The normalised rows of x, in memory of the calling thread.
const float* normed_rows(const mx::array& x, const mx::array& norm, float eps) {
  int64_t channels = x.shape(-1);
  int rows = row_count(x);
  float* normed = scratch<NormedRows>(rows * channels);
  for_rows(rows, [&](int row) {
    simd().rms_norm(
        x.data<float>() + row * channels,
        norm.data<float>(),
        channels,
        eps,
        normed + row * channels);
  });
  return normed;
}

} // namespace

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    const std::optional<mx::array>& residual,
    mx::Stream s) {
  mx::Shape shape = x.shape();
  shape.back() = w.shape(0);
  Storage storage = storage_of(w);
  Arrays inputs{as_float(x, s), dense(w, s)};
  bool has_bias = bias.has_value(), has_residual = residual.has_value();
  if (has_bias) {
    inputs.push_back(as_float(*bias, s));
  }
  if (has_residual) {
    inputs.push_back(as_float(*residual, s));
  }
  return make_op(
      "Linear",
      {shape},
      std::move(inputs),
      [=](const Arrays& in, Arrays& out) {
        DotArgs a =
            dots_of(in[0].data<float>(), row_count(in[0]), in[1], out[0]);
        a.bias = has_bias ? in[2].data<float>() : nullptr;
        a.residual = has_residual ? in.back().data<float>() : nullptr;
        a.residual_stride = a.columns;
        any_rows(a, storage);
      },
      s);
}

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& w,
    mx::Stream s) {
  mx::Shape shape = x.shape();
  shape.back() = w.shape(0);
  Storage storage = storage_of(w);
  return make_op(
      "NormLinear",
      {shape},
      {as_float(x, s), as_float(norm, s), dense(w, s)},
      [=](const Arrays& in, Arrays& out) {
        const float* normed = normed_rows(in[0], in[1], eps);
        any_rows(dots_of(normed, row_count(in[0]), in[2], out[0]), storage);
      },
      s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& gate_up,
    mx::Stream s) {
  if (row_count(x) > kDotRows) {
    return swiglu(norm_linear(x, norm, eps, gate_up, s), s);
  }
  mx::Shape shape = x.shape();
  shape.back() = gate_up.shape(0) / 2;
  Storage storage = storage_of(gate_up);
  return make_op(
      "NormSwiglu",
      {shape},
      {as_float(x, s), as_float(norm, s), dense(gate_up, s)},
      [=](const Arrays& in, Arrays& out) {
        const float* normed = normed_rows(in[0], in[1], eps);
        few_rows_swiglu(
            dots_of(normed, row_count(in[0]), in[2], out[0]), storage);
      },
      s);
}

} // namespace nightingale::cpu
