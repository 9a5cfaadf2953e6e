#include "nightingale/backends/gpu/tile_feed_forward.h"

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/tile_linear.h"
#include "nightingale/backends/gpu/tile_shape.h"

namespace nightingale::gpu {

namespace {

constexpr int kMostChannels = 256; // more do not fit into threadgroup memory

std::vector<mx::array> launch_tiles(
    const mx::array& x,
    const mx::array& residual,
    const ops::FeedForward& block,
    const ops::LayerNorm* next,
    mx::Stream s) {
  int rows = row_count(x), channels = block.out.rows();
  bool deep = tile_depth(x.shape(-1), kWholeMostDepth) > 1 &&
      tile_depth(channels, kWholeMostDepth) > 1;
  Launch tiles{
      .kernel = "tile_feed_forward",
      .inputs =
          {x,
           block.out.w,
           block.out_b,
           residual,
           block.norm.w,
           block.norm.b,
           block.up.w,
           block.up_b,
           block.down.w,
           block.down_b,
           numbers({rows})},
      .outputs = {{residual.shape(), residual.dtype()}},
      .constants =
          {{"T", x.dtype()},
           {"K", x.shape(-1)},
           {"N", channels},
           {"F", block.up.rows()},
           {"COLUMNS", kWholePatch / 8},
           {"DEPTH", deep ? kWholeMostDepth : 1},
           {"NEXT", next != nullptr},
           float_constant("EPS", block.norm.eps),
           float_constant("NEXT_EPS", next ? next->eps : 0.0f)},
      .groups = {group_count(rows, kWholeRows), 1, 1},
      .threads = tile_threads(channels / kWholePatch)};
  if (next) {
    tiles.inputs.push_back(next->w);
    tiles.inputs.push_back(next->b);
    tiles.outputs.push_back({residual.shape(), x.dtype()});
  } else {
    tiles.absent = {"next_w", "next_b", "normed"};
  }
  return launch(tiles, s);
}

} // namespace

bool fits_tile_feed_forward(
    const mx::array& x,
    const ops::FeedForward& block,
    mx::Dtype dtype) {
  auto typed = [&](const ops::Matrix& w) {
    return !w.is_quantized() && w.w.dtype() == dtype;
  };
  int channels = block.out.rows(), hidden = block.up.rows();
  return x.dtype() == dtype && fits_norm_tiles(x, block.out) &&
      channels <= kMostChannels && typed(block.up) && typed(block.down) &&
      block.up.columns() == channels && block.down.rows() == channels &&
      block.down.columns() == hidden && hidden % channels == 0;
}

bool can_use_tile_feed_forward(
    const mx::array& x,
    const ops::FeedForward& block,
    mx::Dtype dtype,
    mx::Stream s) {
  return has_tiles(s) && fits_tile_feed_forward(x, block, dtype);
}

mx::array tile_feed_forward(
    const mx::array& x,
    const mx::array& residual,
    const ops::FeedForward& block,
    mx::Stream s) {
  return launch_tiles(x, residual, block, nullptr, s)[0];
}

ops::Normed tile_feed_forward_norm(
    const mx::array& x,
    const mx::array& residual,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) {
  auto out = launch_tiles(x, residual, block, &next, s);
  return {out[0], out[1]};
}

} // namespace nightingale::gpu
