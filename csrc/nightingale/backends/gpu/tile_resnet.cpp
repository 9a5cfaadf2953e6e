#include "nightingale/backends/gpu/tile_resnet.h"

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/tile_shape.h"

namespace nightingale::gpu {

namespace {

int skip_channels(const ops::ResnetInput& input) {
  return input.skip ? input.skip->shape(-1) : 0;
}

bool is_readable(const mx::array& x, mx::Dtype dtype) {
  return x.shape(-1) % kTileColumns == 0 && x.size() <= kTileMostNumbers &&
      (x.dtype() == mx::float32 || x.dtype() == dtype);
}

} // namespace

bool can_use_tile_conv(
    const ops::ResnetInput& input,
    const ops::CausalConv& conv,
    mx::Dtype dtype,
    mx::Stream s) {
  return has_tiles(s) && conv.matrix && is_half(dtype) &&
      conv.matrix->w.dtype() == dtype && is_readable(input.x, dtype) &&
      (!input.skip || is_readable(*input.skip, dtype)) &&
      fits_whole_rows(conv.matrix->rows()) &&
      conv.matrix->w.size() <= kTileMostWeights;
}

mx::array tile_conv_norm(
    const ops::ResnetInput& input,
    int batch,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  const auto& matrix = *conv.matrix;
  int channels = matrix.rows(), rows = row_count(input.x);
  Launch tiles{
      .kernel = "tile_conv_norm",
      .inputs =
          {input.x, matrix.w, conv.b, norm.w, norm.b, numbers({rows / batch})},
      .outputs = {{{rows, channels}, dtype}},
      .constants =
          {{"T", dtype},
           {"CX", input.x.shape(-1)},
           {"CS", skip_channels(input)},
           {"N", channels},
           {"COLUMNS", kWholePatch / 8},
           {"DEPTH", tile_depth(matrix.columns(), kWholeMostDepth)},
           {"SHIFT", shift.has_value()},
           float_constant("EPS", norm.eps)},
      .groups = {group_count(rows / batch, kWholeRows), batch, 1},
      .threads = tile_threads(channels / kWholePatch)};
  tiles.add_optional("skip", input.skip);
  tiles.add_optional("shift", shift);
  tiles.add_optional("order", input.written);
  return launch_one(tiles, s);
}

ops::Normed tile_resnet(
    const ops::ResnetInput& input,
    int batch,
    const ops::Resnet& block,
    const mx::array& shift,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  const auto& second = block.second;
  auto h = tile_conv_norm(
      input, batch, block.first, block.first_norm, shift, dtype, s);
  int channels = second.b.size(), rows = row_count(input.x);
  bool deep = tile_depth(second.matrix->columns(), kWholeMostDepth) > 1 &&
      tile_depth(block.residual_w.columns(), kWholeMostDepth) > 1;
  mx::Shape shape{rows, channels};
  Launch tiles{
      .kernel = "tile_resnet_sum",
      .inputs =
          {h,
           second.matrix->w,
           second.b,
           block.second_norm.w,
           block.second_norm.b,
           input.x,
           block.residual_w.w,
           block.residual_b,
           norm.w,
           norm.b,
           numbers({rows / batch})},
      .outputs = {{shape, mx::float32}, {shape, dtype}},
      .constants =
          {{"T", dtype},
           {"CX", input.x.shape(-1)},
           {"CS", skip_channels(input)},
           {"N", channels},
           {"COLUMNS", kWholePatch / 8},
           {"DEPTH", deep ? kWholeMostDepth : 1},
           float_constant("EPS", block.second_norm.eps),
           float_constant("NEXT_EPS", norm.eps)},
      .groups = {group_count(rows / batch, kWholeRows), batch, 1},
      .threads = tile_threads(channels / kWholePatch)};
  tiles.add_optional("skip", input.skip);
  auto out = launch(tiles, s);
  return {out[0], out[1]};
}

} // namespace nightingale::gpu
