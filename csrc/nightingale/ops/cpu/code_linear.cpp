#include "nightingale/ops/cpu/code_linear.h"

#include <algorithm>

#include "nightingale/ops/cpu/code_product.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct BlockRows;
struct NormedRow;

// Integers of rows that are used together: half of a core's second-level cache.
constexpr int64_t kCachedIntegers = 1 << 19;

// Calls run(integers, first) for blocks of the rows, `first` being the row that
// a block begins with.
template <typename F, typename Run>
void for_row_blocks(int rows, int groups, F row, Run run) {
  int64_t depth = int64_t(groups) * kCodeGroup;
  int most = static_cast<int>(std::max<int64_t>(8, kCachedIntegers / depth));
  for (int first = 0; first < rows; first += most) {
    int count = std::min(most, rows - first);
    IntegerRows<BlockRows> integers(count, groups);
    for_rows(count, [&](int r) { integers.put(r, 0, groups, row(first + r)); });
    run(integers.view(), first);
  }
}

// The rows of x, normalised one at a time.
struct NormedRows {
  const mx::array& x;
  const mx::array& norm;
  float eps;

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
        PackedCodes codes(in[1], columns, bits);
        Finish f = finish.on(in, out[0]);
        const float* floats = floats_of(in[0]);
        int64_t depth = in[0].shape(-1);
        for_row_blocks(
            row_count(in[0]),
            codes.groups,
            [&](int64_t row) { return floats + row * depth; },
            [&](const CodeRows& rows, int first) {
              multiply(rows, first, codes, f);
            });
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
        for_row_blocks(
            row_count(in[0]),
            codes.groups,
            NormedRows{in[0], in[1], eps},
            [&](const CodeRows& rows, int first) {
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
        for_row_blocks(
            row_count(in[0]),
            codes.groups,
            NormedRows{in[0], in[1], eps},
            [&](const CodeRows& rows, int first) {
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
