#include "nightingale/backends/cpu/code_linear.h"

#include <algorithm>

#include "nightingale/backends/cpu/code_product.h"
#include "nightingale/backends/cpu/ops.h"
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

mx::array code_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  mx::Shape shape = ops::with_columns(x, w.rows());
  storage_of(x); // an Error here, not on the stream's thread
  Arrays inputs{dense(x, s), w.w};
  FinishInputs finish(epilogue, shape, inputs, s);
  return make_op(
      "CodeLinear",
      {shape, epilogue.result_dtype(x)},
      std::move(inputs),
      [=, columns = w.rows(), bits = w.bits](const Arrays& in, Arrays& out) {
        const auto& x = in[0];
        code_product(
            x,
            [&](const auto* data) {
              return row_windows(data, row_count(x), x.shape(-1));
            },
            PackedCodes(in[1], columns, bits),
            finish.on(in, out[0]),
            /* alike */ true);
      },
      s);
}

mx::array norm_code_linear(
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
        PackedCodes codes(in[2], columns, bits);
        Finish f;
        f.y = out[0].data<void>();
        f.stride = columns;
        NormedRows normed{in[0], in[1], eps};
        for_row_blocks(
            normed.windows(), normed, [&](const CodeRows& rows, int first) {
              multiply(rows, first, codes, f);
            });
      },
      s);
}

mx::array norm_code_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  int features = gate_up.rows() / 2;
  if (features % kCodeTile != 0) {
    return swiglu(norm_code_linear(x, norm, eps, gate_up, s), s);
  }
  return make_op(
      "NormCodeSwiglu",
      {ops::with_columns(x, features)},
      {as_float(x, s), as_float(norm, s), gate_up.w},
      [=, bits = gate_up.bits](const Arrays& in, Arrays& out) {
        PackedCodes codes(in[2], 2 * features, bits);
        NormedRows normed{in[0], in[1], eps};
        for_row_blocks(
            normed.windows(), normed, [&](const CodeRows& rows, int first) {
              float* y = out[0].data<float>() + int64_t(first) * features;
              parallel_for(features / kCodeTile, [&](int tile) {
                float* columns = y + tile * kCodeTile;
                multiply_swiglu_tile(rows, codes, tile, columns, features);
              });
            });
      },
      s);
}

} // namespace nightingale::cpu
