#include "nightingale/backends/cpu/quantized_linear.h"

#include <algorithm>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/quantized_product.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct NormedRow;

// The rows of x, normalised one at a time.
struct NormedRows {
  const mx::array& x;
  const mx::array& norm;
  float eps;

  Windows<float> windows() const {
    return row_windows(x.data<float>(), row_count(x), x.shape(-1));
  }

  const float* operator()(int64_t row) const {
    int64_t channels = x.shape(-1);
    float* normed = scratch<NormedRow>(channels);
    simd().rms_norm(
        x.data<float>() + row * channels,
        norm.data<float>(),
        channels,
        eps,
        normed);
    return normed;
  }
};

} // namespace

mx::array quantized_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  mx::Shape shape = ops::with_columns(x, w.rows());
  storage_of(x); // an Error here, not on the stream's thread
  Arrays inputs{dense(x, s), w.w};
  EpilogueInputs epilogue_inputs(epilogue, shape, inputs, s);
  return make_op(
      "CodeLinear",
      {shape, epilogue.result_dtype(x)},
      std::move(inputs),
      [=, columns = w.rows(), bits = w.bits](const Arrays& in, Arrays& out) {
        const auto& x = in[0];
        quantized_product(
            x,
            [&](const auto* data) {
              return row_windows(data, row_count(x), x.shape(-1));
            },
            PackedQuantized(in[1], columns, bits),
            epilogue_inputs.on(in, out[0]),
            /* batch_invariant */ true);
      },
      s);
}

mx::array norm_quantized_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& w,
    mx::Stream s) {
  return make_op(
      "NormCodeLinear",
      {ops::with_columns(x, w.rows())},
      {as_float(x, s), as_float(norm, s), w.w},
      [=, columns = w.rows(), bits = w.bits](const Arrays& in, Arrays& out) {
        PackedQuantized quantized(in[2], columns, bits);
        EpilogueWriter f;
        f.y = out[0].data<void>();
        f.stride = columns;
        NormedRows normed{in[0], in[1], eps};
        for_row_blocks(
            normed.windows(),
            normed,
            [&](const QuantizedRows& rows, int first) {
              multiply(rows, first, quantized, f);
            });
      },
      s);
}

mx::array norm_quantized_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  int features = gate_up.rows() / 2;
  if (features % kQuantizedTile != 0) {
    return swiglu(norm_quantized_linear(x, norm, eps, gate_up, s), s);
  }
  return make_op(
      "NormCodeSwiglu",
      {ops::with_columns(x, features)},
      {as_float(x, s), as_float(norm, s), gate_up.w},
      [=, bits = gate_up.bits](const Arrays& in, Arrays& out) {
        PackedQuantized quantized(in[2], 2 * features, bits);
        NormedRows normed{in[0], in[1], eps};
        for_row_blocks(
            normed.windows(),
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

} // namespace nightingale::cpu
