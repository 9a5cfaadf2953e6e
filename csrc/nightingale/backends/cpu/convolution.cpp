#include <algorithm>

#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/quantized_product.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/backends/signal_ops.h"
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

// The input rows are quantized once, whatever the number of taps.
mx::array quantized_conv1d(
    const mx::array& x,
    const ops::Kernel& w,
    const ops::ConvOptions& options,
    mx::Stream s) {
  check(x, w, options.shape);
  auto shape = options.shape;
  mx::Shape result{
      x.shape(0), shape.output_rows(x.shape(1), w.taps), w.filters()};
  storage_of(x); // throws here, not on the stream's thread
  Arrays inputs{dense(x, s), w.matrix.w};
  EpilogueInputs epilogue_inputs(options.epilogue, result, inputs, s);
  return make_op(
      "QuantizedConv1d",
      {result, options.epilogue.result_dtype(x)},
      std::move(inputs),
      [=, taps = w.taps, filters = w.filters(), bits = w.matrix.bits](
          const Arrays& in, Arrays& out) {
        const auto& x = in[0];
        quantized_product(
            x,
            [&](const auto* data) {
              return conv_windows(x, data, x.shape(2), taps, shape);
            },
            PackedQuantized(in[1], filters, bits),
            epilogue_inputs.on(in, out[0]),
            // With one tap it has the bits of linear() on every processor.
            /* batch_invariant */ taps == 1);
      },
      s);
}

struct TapPanel;
struct PaddedRows;
struct TileSums;

// Steps computed with weights packed once.
constexpr int kStepsPerTile = 512;

// Row stride * q + phase of the full result is a sum over the taps phase,
// phase + stride, ... of input rows q, q - 1, ...: for each phase a convolution
// over the steps q, whose output rows are `stride` apart.
struct Phases {
  const float* x; // of one batch row, [length, channels]
  int length;
  int channels;
  const mx::array& w; // [filters, taps, channels]
  const float* bias;
  ops::ConvTranspose1d shape;
  int rows;
  float* y; // [rows, filters]

  int taps_of(int phase) const {
    return phase < w.shape(1) ? ceil_div(w.shape(1) - phase, shape.stride) : 0;
  }

  // The first step of `phase` whose row is not trimmed, and how many follow.
  int first_step(int phase) const {
    return phase < shape.trim_left
        ? ceil_div(shape.trim_left - phase, shape.stride)
        : 0;
  }
  int row_of_step(int phase, int step) const {
    return step * shape.stride + phase - shape.trim_left;
  }
  int steps(int phase) const {
    int first = row_of_step(phase, first_step(phase));
    return first < rows ? ceil_div(rows - first, shape.stride) : 0;
  }

  // The weights of one phase's taps for columns [column, column + columns).
  const float* pack(int phase, int column, int columns) const {
    const auto& loops = simd().product;
    Storage storage = storage_of(w);
    int taps = w.shape(1);
    int64_t size = int64_t(channels) * loops.columns;
    float* panel = scratch<TapPanel>(taps_of(phase) * size);
    for (int i = 0; i < taps_of(phase); ++i) {
      int64_t at =
          (int64_t(column) * taps + phase + i * shape.stride) * channels;
      loops.pack_panel[static_cast<int>(storage)](
          w.data<char>() + at * storage_bytes(storage),
          int64_t(taps) * channels,
          columns,
          channels,
          panel + i * size);
    }
    return panel;
  }

  // Input row `step` of a tile of steps; in a zero-padded copy where the tile
  // reaches beyond the input.
  const float* rows_at(int step, int taps) const {
    int before = std::max(0, taps - 1), count = simd().product.rows;
    if (step >= before && step + count <= length) {
      return x + int64_t(step) * channels;
    }
    float* padded = scratch<PaddedRows>(int64_t(before + count) * channels);
    for (int i = 0; i < before + count; ++i) {
      int t = step - before + i;
      float* to = padded + int64_t(i) * channels;
      if (t >= 0 && t < length) {
        std::copy_n(x + int64_t(t) * channels, channels, to);
      } else {
        std::fill_n(to, channels, 0.0f);
      }
    }
    return padded + int64_t(before) * channels;
  }

  // Steps [begin, begin + count) of a phase, for some of the columns.
  void run(int phase, int begin, int count, int column, int columns) const {
    const auto& loops = simd().product;
    int filters = w.shape(0);
    float* sums = scratch<TileSums>(loops.rows * loops.columns);
    TileArgs tile;
    tile.row_step = channels;
    tile.tap_step = -channels;
    tile.taps = taps_of(phase);
    tile.depth = channels;
    tile.w = pack(phase, column, columns);
    tile.w_stride = loops.columns;
    tile.y = sums;
    tile.y_stride = loops.columns;
    EpilogueArgs epilogue{};
    epilogue.sums = sums;
    epilogue.sums_stride = loops.columns;
    epilogue.columns = columns;
    epilogue.bias = bias + column;
    epilogue.curve = Curve::none;
    epilogue.stride = int64_t(shape.stride) * filters;
    for (int step = begin; step < begin + count; step += loops.rows) {
      tile.x = rows_at(step, tile.taps);
      (columns <= loops.columns / 2 ? loops.half_tile : loops.tile)(tile);
      epilogue.rows = std::min(loops.rows, begin + count - step);
      epilogue.y = y + int64_t(row_of_step(phase, step)) * filters + column;
      loops.epilogue[static_cast<int>(Storage::f32)](epilogue);
    }
  }
};

} // namespace

mx::array conv1d(
    const mx::array& x,
    const ops::Kernel& kernel,
    const ops::ConvOptions& options,
    mx::Stream s) {
  if (kernel.is_quantized()) {
    return quantized_conv1d(x, kernel, options, s);
  }
  const auto& w = kernel.matrix.w;
  auto shape = options.shape;
  int rows = shape.output_rows(x.shape(1), w.shape(1));
  mx::Shape result{x.shape(0), rows, w.shape(0)};
  storage_of(x); // throws here, not on the stream's thread
  storage_of(w);
  Arrays inputs{dense(x, s), dense(w, s)};
  EpilogueInputs epilogue_inputs(options.epilogue, result, inputs, s);
  bool on_matrix_units = x.dtype() == mx::bfloat16 &&
      w.dtype() == mx::bfloat16 && shape.groups == 1 && has_bf16_matrix_units();
  return make_op(
      "Conv1d",
      {result, options.epilogue.result_dtype(x)},
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
        int filters = w.shape(0), width = simd().product.columns;
        int panels = ceil_div(filters, width);
        int blocks = ceil_div(ceil_div(rows, shape.stride) + 1, kStepsPerTile);
        int tiles = x.shape(0) * blocks * shape.stride * panels;
        parallel_for(tiles, [&](int tile) {
          int column = tile % panels * width;
          int phase = tile / panels % shape.stride;
          int block = tile / panels / shape.stride % blocks;
          int b = tile / panels / shape.stride / blocks;
          Phases phases{
              row_of<float>(x, b, 0),
              x.shape(1),
              x.shape(2),
              w,
              in[2].data<float>(),
              shape,
              rows,
              out[0].data<float>() + int64_t(b) * rows * filters};
          int begin = block * kStepsPerTile;
          int count = std::min(kStepsPerTile, phases.steps(phase) - begin);
          if (count > 0) {
            phases.run(
                phase,
                phases.first_step(phase) + begin,
                count,
                column,
                std::min(width, filters - column));
          }
        });
      },
      s);
}

} // namespace nightingale::cpu
