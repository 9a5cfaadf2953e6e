#include "nightingale/backends/gpu/tile_linear.h"

#include <sstream>

#include "mlx/utils.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/tile_shape.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

// How a product is shared out: patches of 16 * rows by 8 * columns for each
// SIMD group, down by across patches for each group, `depth` tiles of columns
// loaded at once.
struct PatchShape {
  int rows, columns, down, across, depth;

  int height() const {
    return 16 * rows * down;
  }
  int width() const {
    return 8 * columns * across;
  }
};

// By the matrix alone, so that a new number of rows compiles nothing. Of 1,200
// to 1,500 rows, a guided flow's, each gives 130 to 290 groups.
PatchShape shape_of(const ops::Matrix& w) {
  static constexpr PatchShape shapes[] = {
      {2, 4, 2, 4, 1}, {2, 2, 2, 4, 2}, {1, 2, 2, 4, 2}, {1, 2, 2, 1, 2}};
  int least[] = {1024, 512, 64, 16};
  int i = 0;
  while (w.rows() < least[i] || w.rows() % shapes[i].width() != 0) {
    ++i;
  }
  auto shape = shapes[i];
  shape.depth = tile_depth(w.columns(), shape.depth);
  return shape;
}

bool fits(const mx::array& x, const ops::Matrix& w) {
  return !w.is_quantized() && is_half(x.dtype()) && w.w.dtype() == x.dtype() &&
      x.shape(-1) == w.columns() && w.columns() % kTileColumns == 0 &&
      x.size() > 0 && x.size() <= kTileMostNumbers;
}

bool is_small(const ops::Matrix& w) {
  return w.w.size() <= kTileMostWeights;
}

void check(
    bool fits,
    const char* op,
    const mx::array& x,
    const ops::Matrix& w) {
  if (!fits) {
    std::ostringstream message;
    message << op << " is not for x of " << x.dtype() << " " << x.shape()
            << " and w of " << w.w.dtype() << " " << w.w.shape();
    throw Error(message.str());
  }
}

} // namespace

bool fits_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue) {
  return fits(x, w) && w.rows() % 16 == 0 && !epilogue.snake;
}

bool can_use_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  return has_tiles(s) && fits_tiles(x, w, epilogue) && is_small(w);
}

mx::array tile_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  check(fits_tiles(x, w, epilogue), "tile_linear", x, w);
  auto shape = shape_of(w);
  int rows = row_count(x), columns = w.rows();
  Launch tiles{
      .kernel = "tile_linear",
      .inputs = {x, w.w},
      .outputs = {{ops::with_columns(x, columns), epilogue.result_dtype(x)}},
      .constants =
          {{"K", w.columns()},
           {"N", columns},
           {"ROWS", shape.rows},
           {"COLUMNS", shape.columns},
           {"DOWN", shape.down},
           {"ACROSS", shape.across},
           {"DEPTH", shape.depth},
           {"BIAS", epilogue.bias.has_value()},
           {"ACTIVATION", static_cast<int>(epilogue.activation)},
           {"RESIDUAL", epilogue.residual.has_value()}},
      .groups = {columns / shape.width(), group_count(rows, shape.height()), 1},
      .threads = tile_threads(shape.down * shape.across)};
  tiles.add_optional("bias", epilogue.bias);
  tiles.add_optional("residual", epilogue.residual);
  tiles.inputs.push_back(numbers({rows}));
  return launch_one(tiles, s);
}

bool fits_norm_tiles(const mx::array& x, const ops::Matrix& w) {
  return fits(x, w) && fits_whole_rows(w.rows());
}

bool can_use_norm_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    mx::Stream s) {
  return has_tiles(s) && fits_norm_tiles(x, w) && is_small(w);
}

ops::Normed tile_linear_norm(
    const mx::array& x,
    const ops::Matrix& w,
    const mx::array& bias,
    const mx::array& residual,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  check(fits_norm_tiles(x, w), "tile_linear_norm", x, w);
  int rows = row_count(x), columns = w.rows();
  auto shape = ops::with_columns(x, columns);
  auto out = launch(
      {.kernel = "tile_linear_norm",
       .inputs = {x, w.w, bias, residual, norm.w, norm.b, numbers({rows})},
       .outputs = {{shape, residual.dtype()}, {shape, dtype}},
       .constants =
           {{"K", w.columns()},
            {"N", columns},
            {"COLUMNS", kWholePatch / 8},
            {"DEPTH", tile_depth(w.columns(), kWholeMostDepth)},
            float_constant("EPS", norm.eps)},
       .groups = {group_count(rows, kWholeRows), 1, 1},
       .threads = tile_threads(columns / kWholePatch)},
      s);
  return {out[0], out[1]};
}

} // namespace nightingale::gpu
