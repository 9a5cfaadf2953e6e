#include <algorithm>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct TapPanel;
struct PaddedRows;
struct TileSums;

// Steps that share one packing of their weights.
constexpr int kStepsPerTile = 512;

// Row stride * q + phase of the whole result is a sum over the taps phase,
// phase + stride, ... of input rows q, q - 1, ...: for each phase a convolution
// over the steps q, whose rows lie `stride` apart.
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

  // Input row `step` of a tile of steps; in a copy with zeros around where the
  // tile reaches beyond the input.
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

mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  int rows = std::max(0, shape.output_rows(x.shape(1), w.shape(1)));
  storage_of(w); // an Error here, not on the stream's thread
  return make_op(
      "ConvTranspose1d",
      {{x.shape(0), rows, w.shape(0)}},
      {as_float(x, s), dense(w, s), as_float(bias, s)},
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
