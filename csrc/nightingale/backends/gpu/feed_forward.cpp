#include "nightingale/backends/gpu/linear.h"

#include <numeric>

#include "nightingale/backends/gpu/tile_shape.h"

namespace nightingale::gpu {

namespace {

constexpr int kMostChannels = 256; // more do not fit into threadgroup memory

// The sum and, with `next`, its norm.
std::vector<mx::array> launch_at_once(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm* next,
    mx::Stream s) {
  const auto &x = in.x, &residual = in.residual;
  int rows = row_count(x), channels = block.out.rows();
  WholeRows whole{rows, 1, channels, std::gcd(x.shape(-1), channels)};
  auto tiles = whole_row_launch(
      "tile_feed_forward", whole, {1, tile_depth(whole.inner, 2), 1});
  tiles.inputs = {
      x,
      block.out.w,
      block.out_b,
      residual,
      block.norm.w,
      block.norm.b,
      block.up.w,
      block.up_b,
      block.down.w,
      block.down_b,
      numbers({rows})};
  tiles.outputs = {{residual.shape(), residual.dtype()}};
  tiles.constants.insert(
      tiles.constants.end(),
      {{"T", x.dtype()},
       {"K", x.shape(-1)},
       {"F", block.up.rows()},
       {"NEXT", next != nullptr},
       float_constant("EPS", block.norm.eps),
       float_constant("NEXT_EPS", next ? next->eps : 0.0f)});
  if (next) {
    tiles.inputs.push_back(next->w);
    tiles.inputs.push_back(next->b);
    tiles.outputs.push_back({residual.shape(), x.dtype()});
  } else {
    tiles.absent = {"next_w", "next_b", "normed"};
  }
  return launch(tiles, s);
}

// The same bits in a launch for each product. Its groups take more rows than
// what is between products leaves room for in threadgroup memory.
std::vector<mx::array> launch_by_products(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm* next,
    mx::Stream s) {
  auto inner = tile_linear_norm(
      in.x, block.out, {block.out_b, in.residual, block.norm, in.dtype}, s);
  auto hidden = tile_linear(
      inner.normed,
      block.up,
      {.bias = block.up_b, .activation = ops::Activation::gelu},
      s);
  return tile_sum(
      hidden, {block.down, block.down_b, inner.sum, true, next, in.dtype}, s);
}

std::vector<mx::array> launch_tiles(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm* next,
    mx::Stream s) {
  bool by_products =
      is_wide(row_count(in.x)) && in.residual.dtype() == mx::float32;
  return by_products ? launch_by_products(in, block, next, s)
                     : launch_at_once(in, block, next, s);
}

} // namespace

bool fits_tile_feed_forward(const ops::FeedForward& block, mx::Dtype dtype) {
  auto typed = [&](const ops::Matrix& w) {
    return !w.is_quantized() && w.w.dtype() == dtype;
  };
  int channels = block.out.rows(), hidden = block.up.rows();
  return fits_tiles(block.out, dtype) && fits_whole_rows(channels) &&
      channels <= kMostChannels && typed(block.up) && typed(block.down) &&
      block.up.columns() == channels && block.down.rows() == channels &&
      block.down.columns() == hidden && hidden % channels == 0;
}

bool fits_tile_feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block) {
  return in.x.dtype() == in.dtype && fits_norm_tiles(in.x, block.out) &&
      fits_tile_feed_forward(block, in.dtype);
}

mx::array tile_feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  return launch_tiles(in, block, nullptr, s)[0];
}

ops::Normed tile_feed_forward_norm(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) {
  auto out = launch_tiles(in, block, &next, s);
  return {out[0], out[1]};
}

mx::array feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  return has_tiles(s) && fits_tile_feed_forward(in, block)
      ? tile_feed_forward(in, block, s)
      : backends::feed_forward(in, block, s);
}

ops::Normed feed_forward_norm(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) {
  return has_tiles(s) && fits_tile_feed_forward(in, block)
      ? tile_feed_forward_norm(in, block, next, s)
      : backends::feed_forward_norm(in, block, next, s);
}

} // namespace nightingale::gpu
