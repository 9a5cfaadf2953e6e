#include <algorithm>

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/quantized_product.h"

namespace nightingale::cpu {

namespace {

// Tiles are fixed by the shapes, whatever the thread count.
constexpr int kDotColumns = 16;
constexpr int kGemmRows = 256;
constexpr int kGemmColumns = 256;

struct UnpackedWeights;
struct GemmSums;
struct FewSums;
struct NormedFloats;
struct NormedRow;
struct GateAndUp;

// x · wᵀ, all row-contiguous; y is still to be set.
DotArgs dots_of(const float* x, int rows, const mx::array& w) {
  DotArgs a;
  a.depth = w.shape(1);
  a.x = x;
  a.x_stride = a.depth;
  a.rows = rows;
  a.w = w.data<void>();
  a.w_stride = a.depth;
  a.columns = w.shape(0);
  a.y_stride = a.columns;
  return a;
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
  for_parts(whole.columns, kDotColumns, [&](int begin, int count) {
    dots(columns_of(whole, storage, begin, count));
  });
}

// silu(gate) * up of few rows: each tile makes both halves of its columns, so
// that they are combined while they are near. whole.columns: 2F; y: [rows, F]
void few_rows_swiglu(const DotArgs& whole, Storage storage) {
  auto dots = simd().dots[static_cast<int>(storage)];
  int features = whole.columns / 2;
  for_parts(features, kDotColumns, [&](int begin, int count) {
    float* gate = scratch<GateAndUp>(2 * whole.rows * count);
    float* up = gate + whole.rows * count;
    for (int half = 0; half < 2; ++half) {
      int column = half * features + begin;
      DotArgs a = columns_of(whole, storage, column, count);
      a.y = half ? up : gate;
      a.y_stride = count;
      dots(a);
    }
    for (int row = 0; row < whole.rows; ++row) {
      simd().silu_mul(
          gate + row * count,
          up + row * count,
          count,
          whole.y + row * whole.y_stride + begin);
    }
  });
}

#if defined(__APPLE__)
constexpr bool kUsesBlas = true; // Accelerate has matrix units that we have not
#else
constexpr bool kUsesBlas = false;
#endif

// Tiles of BLAS products, each in one thread.
void blas_rows(
    const Windows<float>& x,
    const void* stored,
    Storage storage,
    int columns,
    const EpilogueWriter& epilogue) {
  int64_t depth = x.channels;
  for_parts(columns, kGemmColumns, [&](int column, int count) {
    const void* part = static_cast<const char*>(stored) +
        column * depth * storage_bytes(storage);
    const float* w = static_cast<const float*>(part);
    if (storage != Storage::f32) {
      float* unpacked = scratch<UnpackedWeights>(count * depth);
      simd().unpack[static_cast<int>(storage)](part, count * depth, unpacked);
      w = unpacked;
    }
    float* sums = scratch<GemmSums>(kGemmRows * kGemmColumns);
    for (int row = 0; row < x.rows; row += kGemmRows) {
      int rows = std::min(kGemmRows, x.rows - row);
      gemm(
          rows,
          count,
          depth,
          x.x + row * depth,
          depth,
          w,
          depth,
          Layout::transposed,
          sums,
          count);
      epilogue(sums, count, row, rows, column, count);
    }
  });
}

// Few rows, whose sums may be the result already.
void few_rows_with_epilogue(
    DotArgs a,
    Storage storage,
    const EpilogueWriter& epilogue) {
  bool adds_only =
      epilogue.curve == Curve::none && epilogue.storage == Storage::f32;
  if (adds_only) {
    a.bias = epilogue.bias;
    a.residual = static_cast<const float*>(epilogue.residual);
    a.residual_stride = epilogue.stride;
    a.y = static_cast<float*>(epilogue.y);
    few_rows(a, storage);
    return;
  }
  a.y = scratch<FewSums>(int64_t(a.rows) * a.columns);
  few_rows(a, storage);
  epilogue(a.y, a.y_stride, 0, a.rows, 0, a.columns);
}

// w: [N, K]
void any_rows(
    const float* x,
    int rows,
    const mx::array& w,
    const EpilogueWriter& f) {
  Storage storage = storage_of(w);
  int columns = w.shape(0), depth = w.shape(1);
  if (rows <= kDotRows) {
    few_rows_with_epilogue(dots_of(x, rows, w), storage, f);
    return;
  }
  auto windows = row_windows(x, rows, depth);
  if (kUsesBlas) {
    blas_rows(windows, w.data<void>(), storage, columns, f);
  } else {
    product(windows, w.data<void>(), storage, columns, f);
  }
}

// The rows of x after a norm.
struct NormedRows {
  const mx::array& x; // [..., K]
  const float* w;
  const float* b; // of a layer norm, or null
  float eps;

  Windows<float> windows() const {
    return row_windows(x.data<float>(), row_count(x), x.shape(-1));
  }

  void write(int64_t row, float* y) const {
    int64_t channels = x.shape(-1);
    const float* from = x.data<float>() + row * channels;
    if (b) {
      simd().layer_norm(from, w, b, channels, eps, y);
    } else {
      simd().rms_norm(from, w, channels, eps, y);
    }
  }

  // One row, until the calling thread asks for the next.
  const float* operator()(int64_t row) const {
    float* y = scratch<NormedRow>(x.shape(-1));
    write(row, y);
    return y;
  }

  // All rows, in memory of the calling thread.
  const float* all() const {
    int64_t channels = x.shape(-1);
    int rows = row_count(x);
    float* y = scratch<NormedFloats>(rows * channels);
    for_rows(rows, [&](int row) { write(row, y + row * channels); });
    return y;
  }
};

// Appends what a norm needs to the inputs of an op, whose first is x, and finds
// it again when the op runs.
struct NormInputs {
  bool has_bias;
  float eps;
  int first;

  NormInputs(const ops::Norm& norm, Arrays& inputs, mx::Stream s)
      : has_bias(norm.b.has_value()), eps(norm.eps), first(inputs.size()) {
    inputs.push_back(as_float(norm.w, s));
    if (norm.b) {
      inputs.push_back(as_float(*norm.b, s));
    }
  }

  NormedRows on(const Arrays& in) const {
    const float* b = has_bias ? in[first + 1].data<float>() : nullptr;
    return {in[0], in[first].data<float>(), b, eps};
  }
};

// An Error here, not on the stream's thread.
void check(const mx::array& x, const ops::Matrix& w) {
  backends::check_linear(x, w, /* on_cpu */ true);
  if (!w.is_quantized()) {
    storage_of(w.w);
  }
}

// A swiglu of quantized weights, in whole tiles.
mx::array quantized_norm_swiglu(
    const mx::array& x,
    const ops::Norm& norm,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  int features = gate_up.rows() / 2;
  Arrays inputs{as_float(x, s), gate_up.w};
  NormInputs norm_inputs(norm, inputs, s);
  return make_op(
      "NormQuantizedSwiglu",
      {ops::with_columns(x, features)},
      std::move(inputs),
      [features, norm_inputs, bits = gate_up.bits, row_bits = gate_up.row_bits](
          const Arrays& in, Arrays& out) {
        PackedQuantized quantized(in[1], 2 * features, bits);
        NormedRows normed = norm_inputs.on(in);
        for_row_blocks(
            normed.windows(),
            row_bits,
            normed,
            [&](const QuantizedRows& rows, int first) {
              float* y = out[0].data<float>() + int64_t(first) * features;
              parallel_for(features / kQuantizedTile, [&](int tile) {
                float* columns = y + tile * kQuantizedTile;
                multiply_swiglu_tile(rows, quantized, tile, columns, features);
              });
            });
      },
      s);
}

// A swiglu of up to kDotRows rows.
mx::array few_rows_norm_swiglu(
    const mx::array& x,
    const ops::Norm& norm,
    const mx::array& gate_up,
    mx::Stream s) {
  Storage storage = storage_of(gate_up);
  Arrays inputs{as_float(x, s), dense(gate_up, s)};
  NormInputs norm_inputs(norm, inputs, s);
  return make_op(
      "NormSwiglu",
      {ops::with_columns(x, gate_up.shape(0) / 2)},
      std::move(inputs),
      [storage, norm_inputs](const Arrays& in, Arrays& out) {
        NormedRows normed = norm_inputs.on(in);
        DotArgs a = dots_of(normed.all(), row_count(in[0]), in[1]);
        a.y = out[0].data<float>();
        a.y_stride = out[0].shape(-1);
        few_rows_swiglu(a, storage);
      },
      s);
}

} // namespace

mx::array linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  check(x, w);
  storage_of(x); // an Error here, not on the stream's thread
  auto shape = ops::with_columns(x, w.rows());
  Arrays inputs{dense(x, s), dense(w.w, s)};
  EpilogueInputs epilogue_inputs(epilogue, shape, inputs, s);
  bool on_matrix_units = x.dtype() == mx::bfloat16 &&
      w.w.dtype() == mx::bfloat16 && has_bf16_matrix_units();
  return make_op(
      "Linear",
      {shape, epilogue.result_dtype(x)},
      std::move(inputs),
      [=, columns = w.rows(), bits = w.bits, row_bits = w.row_bits](
          const Arrays& in, Arrays& out) {
        const auto &x = in[0], &w = in[1];
        EpilogueWriter f = epilogue_inputs.on(in, out[0]);
        int rows = row_count(x);
        auto windows = [&](const auto* data) {
          return row_windows(data, rows, x.shape(-1));
        };
        if (bits) { // batch-invariant
          PackedQuantized quantized(w, columns, bits);
          quantized_product(x, windows, quantized, row_bits, f, true);
        } else if (on_matrix_units && rows > kDotRows) {
          const auto* data = w.data<uint16_t>();
          matrix_product(windows(x.data<uint16_t>()), data, columns, f);
        } else {
          any_rows(floats_of(x), rows, w, f);
        }
      },
      s);
}

mx::array norm_linear(
    const mx::array& x,
    const ops::Norm& norm,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  check(x, w);
  auto shape = ops::with_columns(x, w.rows());
  Arrays inputs{as_float(x, s), dense(w.w, s)};
  NormInputs norm_inputs(norm, inputs, s);
  EpilogueInputs epilogue_inputs(epilogue, shape, inputs, s);
  return make_op(
      "NormLinear",
      {shape},
      std::move(inputs),
      [norm_inputs,
       epilogue_inputs,
       columns = w.rows(),
       bits = w.bits,
       row_bits = w.row_bits](const Arrays& in, Arrays& out) {
        NormedRows normed = norm_inputs.on(in);
        EpilogueWriter f = epilogue_inputs.on(in, out[0]);
        if (!bits) {
          any_rows(normed.all(), row_count(in[0]), in[1], f);
          return;
        }
        PackedQuantized quantized(in[1], columns, bits);
        for_row_blocks(
            normed.windows(),
            row_bits,
            normed,
            [&](const QuantizedRows& rows, int first) {
              multiply(rows, first, quantized, f);
            });
      },
      s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const ops::Norm& norm,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  check(x, gate_up);
  if (gate_up.is_quantized() && gate_up.rows() % (2 * kQuantizedTile) == 0) {
    return quantized_norm_swiglu(x, norm, gate_up, s);
  }
  if (!gate_up.is_quantized() && row_count(x) <= kDotRows) {
    return few_rows_norm_swiglu(x, norm, gate_up.w, s);
  }
  return swiglu(cpu::norm_linear(x, norm, gate_up, {}, s), s);
}

} // namespace nightingale::cpu
