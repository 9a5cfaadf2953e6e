#include <algorithm>
#include <cstring>

#include "nightingale/ops/cpu/blas.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/scratch.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

// Weight rows of one tile. Fixed, whatever the thread count.
constexpr int kDotTile = 32;
constexpr int kGemmRows = 256;
constexpr int kGemmColumns = 256;

struct UnpackedWeights;

int tiles_of(int count, int tile) {
  return (count + tile - 1) / tile;
}

void few_rows(const DotArgs& whole, Storage storage) {
  auto dots = simd().dots[static_cast<int>(storage)];
  parallel_for(tiles_of(whole.columns, kDotTile), [&](int tile) {
    int begin = tile * kDotTile;
    DotArgs a = whole;
    a.columns = std::min(kDotTile, whole.columns - begin);
    a.w = static_cast<const char*>(whole.w) +
        begin * whole.w_stride * storage_bytes(storage);
    a.bias = whole.bias ? whole.bias + begin : nullptr;
    a.residual = whole.residual ? whole.residual + begin : nullptr;
    a.y = whole.y + begin;
    dots(a);
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
        const auto &x = in[0], &w = in[1];
        DotArgs a;
        a.depth = x.shape(-1);
        a.x = x.data<float>();
        a.x_stride = a.depth;
        a.rows = row_count(x);
        a.w = w.data<void>();
        a.w_stride = a.depth;
        a.columns = w.shape(0);
        a.bias = has_bias ? in[2].data<float>() : nullptr;
        a.residual = has_residual ? in.back().data<float>() : nullptr;
        a.residual_stride = a.columns;
        a.y = out[0].data<float>();
        a.y_stride = a.columns;
        if (a.rows <= kDotRows) {
          few_rows(a, storage);
        } else {
          many_rows(a, storage);
        }
      },
      s);
}

} // namespace nightingale::cpu
