#include <algorithm>

#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/quantized_product.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"

namespace nightingale::cpu {

namespace {

struct FloatWeights;
struct TapWeights;
struct ChannelSums;

// One filter per channel. w: [C, taps]
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
    // Taps outside the input are skipped.
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

void check(const mx::array& x, const ops::Kernel& w, const ops::Conv1d& shape) {
  if (!w.matrix.is_packed()) {
    throw Error("quantized convolutions run on the CPU only");
  }
  if (x.shape(2) != w.channels() || shape.groups != 1) {
    throw Error(
        "rows of " + std::to_string(x.shape(2)) + " channels in " +
        std::to_string(shape.groups) +
        " groups do not fit a quantized kernel of " +
        std::to_string(w.channels()) + " channels");
  }
}

struct TapPanel;

// Steps computed with weights packed once.
constexpr int kStepsPerTile = 512;

// The weights of the taps phase, phase + stride, ... for some of the columns.
// w: [filters, taps, channels]
const float*
pack_taps(const mx::array& w, int phase, int stride, int column, int columns) {
  const auto& loops = simd().product;
  Storage storage = storage_of(w);
  int taps = w.shape(1), channels = w.shape(2);
  int64_t size = int64_t(channels) * loops.columns;
  float* panel = scratch<TapPanel>(ceil_div(taps, stride) * size);
  float* to = panel;
  for (int tap = phase; tap < taps; tap += stride, to += size) {
    int64_t at = (int64_t(column) * taps + tap) * channels;
    loops.pack_panel[static_cast<int>(storage)](
        w.data<char>() + at * storage_bytes(storage),
        int64_t(taps) * channels,
        columns,
        channels,
        to);
  }
  return panel;
}

// Row stride * q + phase of the full result is a sum over the taps phase,
// phase + stride, ... of input rows q, q - 1, ...: for each phase a convolution
// over the steps q, whose output rows are `stride` apart.
struct PhaseSteps {
  int first; // whose row is not trimmed
  int row; // of the first
  int count;

  PhaseSteps(const ops::ConvTranspose1d& shape, int phase, int rows) {
    int trimmed = std::max(0, shape.trim_left - phase);
    first = ceil_div(trimmed, shape.stride);
    row = first * shape.stride + phase - shape.trim_left;
    count = row < rows ? ceil_div(rows - row, shape.stride) : 0;
  }
};

} // namespace

mx::array conv1d(
    const mx::array& x,
    const ops::Kernel& kernel,
    const ops::ConvOptions& options,
    mx::Stream s) {
  const auto& w = kernel.matrix.w;
  auto shape = options.shape;
  if (kernel.is_quantized()) {
    check(x, kernel, shape);
  } else {
    storage_of(w); // throws here, not on the stream's thread
  }
  storage_of(x);
  int taps = kernel.taps, channels = kernel.channels();
  mx::Shape result{
      x.shape(0), shape.output_rows(x.shape(1), taps), kernel.filters()};
  Arrays inputs{dense(x, s), dense(w, s)};
  EpilogueInputs epilogue_inputs(options.epilogue, result, inputs, s);
  bool on_matrix_units = x.dtype() == mx::bfloat16 &&
      w.dtype() == mx::bfloat16 && shape.groups == 1 && has_bf16_matrix_units();
  return make_op(
      "Conv1d",
      {result, options.epilogue.result_dtype(x)},
      std::move(inputs),
      [=,
       filters = kernel.filters() / shape.groups,
       bits = kernel.matrix.bits,
       row_bits = kernel.matrix.row_bits](const Arrays& in, Arrays& out) {
        const auto &x = in[0], &w = in[1];
        EpilogueWriter epilogue = epilogue_inputs.on(in, out[0]);
        auto windows_of = [&](const auto* data) {
          return conv_windows(x, data, channels, taps, shape);
        };
        if (bits) {
          // The input rows are quantized once, whatever the number of taps.
          // With one tap it has the bits of linear() on every processor.
          PackedQuantized quantized(w, filters, bits);
          quantized_product(
              x, windows_of, quantized, row_bits, epilogue, taps == 1);
          return;
        }
        if (on_matrix_units) {
          auto windows = windows_of(x.data<uint16_t>());
          matrix_product(windows, w.data<uint16_t>(), filters, epilogue);
          return;
        }
        auto windows = windows_of(floats_of(x));
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

mx::array conv_transpose1d(
    const mx::array& x,
    const ops::TransposedFilters& filters,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  const auto& w = filters.w;
  int rows = std::max(0, shape.output_rows(x.shape(1), w.shape(1)));
  storage_of(w); // throws here, not on the stream's thread
  return make_op(
      "ConvTranspose1d",
      {{x.shape(0), rows, w.shape(0)}},
      {as_float(x, s), dense(w, s), as_float(filters.bias, s)},
      [=](const Arrays& in, Arrays& out) {
        const auto &x = in[0], &w = in[1];
        int filters = w.shape(0), stride = shape.stride;
        auto loops = float_loops();
        int panels = ceil_div(filters, loops.columns);
        int blocks = ceil_div(ceil_div(rows, stride) + 1, kStepsPerTile);
        int tiles = x.shape(0) * blocks * stride * panels;
        parallel_for(tiles, [&](int tile) {
          int column = tile % panels * loops.columns;
          int columns = std::min(loops.columns, filters - column);
          int phase = tile / panels % stride;
          int begin = tile / panels / stride % blocks * kStepsPerTile;
          int b = tile / panels / stride / blocks;
          PhaseSteps steps(shape, phase, rows);
          if (begin >= steps.count) {
            return;
          }
          const float* from = row_of<float>(x, b, 0);
          auto windows = row_windows(from, x.shape(1), x.shape(2));
          windows.rows = std::min(kStepsPerTile, steps.count - begin);
          windows.taps = ceil_div(std::max(0, w.shape(1) - phase), stride);
          windows.dilation = -1;
          windows.pad_left = -(steps.first + begin);
          EpilogueWriter epilogue;
          epilogue.bias = in[2].data<float>();
          epilogue.stride = int64_t(stride) * filters;
          int64_t row = int64_t(b) * rows + steps.row + begin * stride;
          epilogue.y = out[0].data<float>() + row * filters;
          const float* packed = pack_taps(w, phase, stride, column, columns);
          int row_tiles = cpu::row_tiles(windows, loops.rows);
          for (int i = 0; i < row_tiles; i += kTilesPerBlock) {
            run_block(
                windows, loops, i, packed, column, column + columns, epilogue);
          }
        });
      },
      s);
}

} // namespace nightingale::cpu
