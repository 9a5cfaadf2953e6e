#include <algorithm>
#include <cstring>

#include "nightingale/ops/cpu/blas.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/scratch.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

constexpr int kRowsPerTile = 64;

struct Windows;

// Copies the channels of one group under the kernel's taps, for one output row.
void gather_window(
    const mx::array& x,
    const ops::Conv1d& shape,
    int taps,
    int b,
    int row,
    int first_channel,
    int channels,
    float* window) {
  int length = x.shape(1);
  for (int tap = 0; tap < taps; ++tap) {
    int t = row * shape.stride + tap * shape.dilation - shape.pad_left;
    float* to = window + int64_t(tap) * channels;
    if (t < 0 || t >= length) {
      std::fill(to, to + channels, 0.0f);
    } else {
      const float* from = row_of<float>(x, b, t) + first_channel;
      std::memcpy(to, from, channels * sizeof(float));
    }
  }
}

} // namespace

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    mx::Stream s) {
  int taps = w.shape(1);
  int reach = (taps - 1) * shape.dilation + 1;
  int padded = x.shape(1) + shape.pad_left + shape.pad_right;
  int rows = padded < reach ? 0 : (padded - reach) / shape.stride + 1;
  return make_op(
      "Conv1d",
      {{x.shape(0), rows, w.shape(0)}},
      {as_float(x, s), as_float(w, s)},
      [=](const Arrays& in, Arrays& out) {
        const auto &x = in[0], &w = in[1];
        int filters = w.shape(0) / shape.groups, channels = w.shape(2);
        int depth = taps * channels;
        int blocks = (rows + kRowsPerTile - 1) / kRowsPerTile;
        int tiles = x.shape(0) * shape.groups * blocks;
        parallel_for(tiles, [&](int tile) {
          int begin = tile % blocks * kRowsPerTile;
          int count = std::min(kRowsPerTile, rows - begin);
          int group = tile / blocks % shape.groups;
          int b = tile / blocks / shape.groups;
          float* windows = scratch<Windows>(int64_t(kRowsPerTile) * depth);
          for (int r = 0; r < count; ++r) {
            gather_window(
                x,
                shape,
                taps,
                b,
                begin + r,
                group * channels,
                channels,
                windows + int64_t(r) * depth);
          }
          gemm(
              count,
              filters,
              depth,
              1.0f,
              windows,
              depth,
              w.data<float>() + int64_t(group) * filters * depth,
              depth,
              Layout::transposed,
              0.0f,
              out[0].data<float>() + (int64_t(b) * rows + begin) * w.shape(0) +
                  group * filters,
              w.shape(0));
        });
      },
      s);
}

} // namespace nightingale::cpu
