#include <algorithm>

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

constexpr int64_t kTile = 1 << 14;

} // namespace

mx::array silu(const mx::array& x, mx::Stream s) {
  return make_op(
      "Silu",
      {x.shape()},
      {as_float(x, s)},
      [](const Arrays& in, Arrays& out) {
        int64_t count = in[0].size();
        parallel_for((count + kTile - 1) / kTile, [&](int tile) {
          int64_t begin = tile * kTile;
          simd().silu(
              in[0].data<float>() + begin,
              std::min(kTile, count - begin),
              out[0].data<float>() + begin);
        });
      },
      s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
  mx::Shape shape = gate_up.shape();
  shape.back() /= 2;
  return make_op(
      "Swiglu",
      {shape},
      {as_float(gate_up, s)},
      [](const Arrays& in, Arrays& out) {
        int64_t channels = out[0].shape(-1);
        int rows = row_count(out[0]);
        int rows_per_tile = std::max<int64_t>(1, kTile / channels);
        int tiles = (rows + rows_per_tile - 1) / rows_per_tile;
        parallel_for(tiles, [&](int tile) {
          int end = std::min(rows, (tile + 1) * rows_per_tile);
          for (int row = tile * rows_per_tile; row < end; ++row) {
            const float* gate = in[0].data<float>() + 2 * row * channels;
            float* y = out[0].data<float>() + row * channels;
            simd().silu_mul(gate, gate + channels, channels, y);
          }
        });
      },
      s);
}

} // namespace nightingale::cpu
