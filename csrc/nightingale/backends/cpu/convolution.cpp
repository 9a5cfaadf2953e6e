#include <algorithm>

#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct FloatWeights;
struct TapWeights;
struct ChannelSums;

// A filter for every channel. w: [C, taps]
void depthwise(
    const Windows<float>& x,
    const mx::array& weights,
    const EpilogueWriter& epilogue) {
  int channels = weights.shape(0);
  float* by_tap = scratch<TapWeights>(int64_t(x.taps) * channels);
  float* w = scratch<FloatWeights>(weights.size());
  simd().unpack[static_cast<int>(storage_of(weights))](
      weights.data<void>(), weights.size(), w);
  for (int tap = 0; tap < x.taps; ++tap) {
    for (int c = 0; c < channels; ++c) {
      by_tap[tap * channels + c] = w[c * x.taps + tap];
    }
  }
  for_rows(x.batch * x.rows, [&](int row) {
    int b = row / x.rows, first = row % x.rows * x.stride - x.pad_left;
    // Taps before the first input row and behind the last take no part.
    auto tap_at = [&](int t) {
      int tap = (t - first + x.dilation - 1) / x.dilation;
      return t <= first ? 0 : std::min(x.taps, tap);
    };
    DepthwiseArgs a;
    a.x = x.x + (int64_t(b) * x.length + first) * x.row_stride;
    a.tap_step = x.tap_step();
    a.first_tap = tap_at(0);
    a.last_tap = tap_at(x.length);
    a.w = by_tap;
    a.w_stride = channels;
    a.channels = channels;
    a.y = scratch<ChannelSums>(channels);
    simd().product.depthwise(a);
    epilogue(a.y, channels, row, 1, 0, channels);
  });
}

} // namespace

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  int rows = shape.output_rows(x.shape(1), w.shape(1));
  mx::Shape result{x.shape(0), rows, w.shape(0)};
  storage_of(x); // an Error here, not on the stream's thread
  storage_of(w);
  Arrays inputs{dense(x, s), dense(w, s)};
  EpilogueInputs epilogue_inputs(epilogue, result, inputs, s);
  bool on_matrix_units = x.dtype() == mx::bfloat16 &&
      w.dtype() == mx::bfloat16 && shape.groups == 1 && has_bf16_matrix_units();
  return make_op(
      "Conv1d",
      {result, epilogue.result_dtype(x)},
      std::move(inputs),
      [=](const Arrays& in, Arrays& out) {
        const auto &x = in[0], &w = in[1];
        EpilogueWriter epilogue = epilogue_inputs.on(in, out[0]);
        int filters = w.shape(0) / shape.groups;
        if (on_matrix_units) {
          matrix_product(
              conv_windows(
                  x, x.data<uint16_t>(), w.shape(2), w.shape(1), shape),
              w.data<uint16_t>(),
              filters,
              epilogue);
          return;
        }
        auto windows =
            conv_windows(x, floats_of(x), w.shape(2), w.shape(1), shape);
        if (windows.channels == 1 && filters == 1 && shape.groups > 1) {
          depthwise(windows, w, epilogue);
          return;
        }
        Storage storage = storage_of(w);
        int64_t group_bytes =
            int64_t(filters) * windows.depth() * storage_bytes(storage);
        for (int group = 0; group < shape.groups; ++group) {
          product(
              windows,
              w.data<char>() + group * group_bytes,
              storage,
              filters,
              epilogue.from_column(group * filters));
          windows.x += windows.channels;
        }
      },
      s);
}

} // namespace nightingale::cpu
