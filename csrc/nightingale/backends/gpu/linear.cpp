#include "nightingale/backends/gpu/linear.h"

#include <sstream>

#include "mlx/ops.h"
#include "mlx/utils.h"
#include "nightingale/backends/gpu/epilogue.h"
#include "nightingale/backends/gpu/tile_shape.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

// Rows that share the reading of a matrix: the two of guidance, or those of
// several sequences. With more, reading x takes longer than is saved.
constexpr int kGemvRows = 2;
constexpr int kSharedGemvRows = 4;
constexpr int kLaneColumns = 8; // that a lane takes at once
constexpr int kSimd = 32;
constexpr int kManyRows = 2048; // of a matrix: enough to give every core some
constexpr int kTileRows = 16; // of a matrix, that a tile multiplies at least
constexpr int kCoarseGelu = 8; // of metal/activations.h, for results of 16 bits

bool is_float(mx::Dtype dtype) {
  return dtype == mx::float32 || dtype == mx::float16 || dtype == mx::bfloat16;
}

// By the matrix and whether rows are many, so that a new number of rows
// compiles nothing. Of 1,200 to 1,500 rows, a guided flow's, each but the first
// gives 130 to 290 groups.
PatchShape shape_of(const ops::Matrix& w, int rows) {
  PatchShape shape = w.rows() >= 1024 ? PatchShape{2, 4, 2, 4, 1}
      : w.rows() >= 512               ? PatchShape{2, 4, 2, 2, 2}
      : w.rows() >= 64                ? PatchShape{1, 4, 2, 2, 2}
                                      : PatchShape{1, 4, 2, 1, 2};
  if (is_wide(rows) && w.rows() >= 512) {
    shape = {4, 8, 2, 2, 1};
  }
  shape.depth = tile_depth(w.columns(), shape.depth);
  return shape;
}

bool fits(const ops::Matrix& w, mx::Dtype dtype) {
  return !w.is_quantized() && is_half(dtype) && w.w.dtype() == dtype &&
      w.columns() % kTileColumns == 0;
}

bool fits(const mx::array& x, const ops::Matrix& w) {
  return fits(w, x.dtype()) && x.shape(-1) == w.columns() && x.size() > 0 &&
      x.size() <= kTileMostNumbers;
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

// x · wᵀ by MLX.
mx::array product(const mx::array& x, const ops::Matrix& w, mx::Stream s) {
  if (!w.is_quantized()) {
    return mx::matmul(x, transposed(w.w, s), s);
  }
  return mx::quantized_matmul(
      x, w.w, *w.scales, w.biases, true, w.group, w.bits, "affine", s);
}

// Whether nothing but a residual follows the product. What follows otherwise is
// a launch of its own: see decoder_feed_forward, whose products are many.
bool is_plain(const ops::Epilogue& epilogue) {
  return !epilogue.bias && !epilogue.snake &&
      epilogue.activation == ops::Activation::none;
}

mx::array gated(const mx::array& gate_up, mx::Stream s) {
  if (!has_kernels(s)) {
    return reference::swiglu(gate_up, s);
  }
  int columns = gate_up.shape(-1) / 2;
  return launch_one(
      {.kernel = "swiglu",
       .inputs = {gate_up},
       .outputs = {{ops::with_columns(gate_up, columns), gate_up.dtype()}},
       .constants = {{"T", gate_up.dtype()}, {"F", columns}},
       .groups = {row_count(gate_up), 1, 1},
       .threads = {256, 128, 64, 32}},
      s);
}

} // namespace

bool can_use_gemv(const ops::Matrix& w, mx::Stream s) {
  return has_kernels(s) && (w.is_quantized() || is_float(w.w.dtype())) &&
      w.columns() % kLaneColumns == 0;
}

bool can_use_gemv(const mx::array& x, const ops::Matrix& w, mx::Stream s) {
  return can_use_gemv(w, s) && row_count(x) <= kGemvRows && is_float(x.dtype());
}

mx::array gemv(
    const mx::array& x,
    const ops::Matrix& w,
    const GemvOptions& options,
    mx::Stream s) {
  const auto& [norm, swiglu, epilogue, sequences] = options;
  auto shape = GemvShape::of(w);
  auto result = epilogue.result_dtype(x);
  int all_rows = row_count(x), rows = all_rows / sequences;
  if (sequences > 1) {
    rows = all_rows > kGemvRows ? kSharedGemvRows : kGemvRows;
  }
  int columns = swiglu ? w.rows() / 2 : w.rows();
  int block = swiglu ? shape.block / 2 : shape.block;
  auto constants = gemv_constants(w, shape, rows, result);
  constants.emplace_back("K", w.columns());
  constants.emplace_back("NORM", !norm ? 0 : norm->b ? 2 : 1);
  constants.emplace_back("SWIGLU", swiglu);
  constants.emplace_back("BIAS", epilogue.bias.has_value());
  constants.emplace_back("ACTIVATION", static_cast<int>(epilogue.activation));
  constants.emplace_back("RESIDUAL", epilogue.residual.has_value());
  constants.push_back(float_constant("EPS", norm ? norm->eps : 0.0f));
  Launch gemv{
      .kernel = "gemv",
      .inputs = {x, stored(w)},
      .outputs = {{ops::with_columns(x, columns), result}},
      .constants = std::move(constants),
      .groups = {group_count(columns, block), group_count(all_rows, rows), 1},
      .threads = shape.threads};
  gemv.add_optional("norm", norm ? std::optional(norm->w) : std::nullopt);
  gemv.add_optional("shift", norm ? norm->b : std::nullopt);
  gemv.add_optional("bias", epilogue.bias);
  gemv.add_optional("residual", epilogue.residual);
  gemv.add_optional(
      "extent",
      rows > kGemvRows ? std::optional(numbers({all_rows})) : std::nullopt);
  gemv.best_size_only = sequences > 1;
  return launch_one(gemv, s);
}

const mx::array& stored(const ops::Matrix& w) {
  return w.is_quantized() ? *w.whole : w.w;
}

GemvShape GemvShape::of(const ops::Matrix& w) {
  GemvShape shape{w.rows() > kManyRows ? 8 : 4, {}};
  int widest = w.columns() > 2048 ? 512 : 128;
  for (int threads = widest; threads >= kSimd; threads /= 2) {
    shape.threads.push_back(threads);
  }
  return shape;
}

std::vector<Constant> gemv_constants(
    const ops::Matrix& w,
    const GemvShape& shape,
    int rows,
    mx::Dtype result) {
  bool quantized = w.is_quantized();
  return {
      {"W", w.w.dtype()},
      {"S", quantized ? w.scales->dtype() : w.w.dtype()},
      {"Y", result},
      {"BITS", quantized ? w.bits : 8 * static_cast<int>(w.w.itemsize())},
      {"GROUP", quantized ? w.group : 1},
      {"N", w.rows()},
      {"ROWS", rows},
      {"BLOCK", shape.block}};
}

bool fits_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue) {
  return fits(x, w) && w.rows() % kTileRows == 0 && !epilogue.snake;
}

bool fits_tiles(const ops::Matrix& w, mx::Dtype dtype) {
  return fits(w, dtype) && w.rows() % kTileRows == 0 && is_small(w);
}

mx::array tile_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  check(fits_tiles(x, w, epilogue), "tile_linear", x, w);
  int rows = row_count(x), columns = w.rows();
  auto shape = shape_of(w, rows);
  auto result = epilogue.result_dtype(x);
  bool coarse = epilogue.activation == ops::Activation::gelu && is_half(result);
  Launch tiles{
      .kernel = "tile_linear",
      .inputs = {x, w.w},
      .outputs = {{ops::with_columns(x, columns), result}},
      .constants =
          {{"T", x.dtype()},
           {"K", w.columns()},
           {"BIAS", epilogue.bias.has_value()},
           {"ACTIVATION",
            coarse ? kCoarseGelu : static_cast<int>(epilogue.activation)},
           {"RESIDUAL", epilogue.residual.has_value()}},
      .threads = {}};
  shape.divide(tiles, rows, columns);
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

std::vector<mx::array>
tile_sum(const mx::array& x, const TileSum& args, mx::Stream s) {
  const auto& [w, bias, residual, onto, norm, dtype] = args;
  check(fits_norm_tiles(x, w), "tile_linear_norm", x, w);
  int rows = row_count(x), columns = w.rows();
  auto shape = ops::with_columns(x, columns);
  auto tiles =
      whole_row_launch("tile_linear_norm", {rows, 1, columns, w.columns()});
  tiles.inputs = {x, w.w, bias, residual};
  tiles.outputs = {{shape, residual.dtype()}};
  tiles.add_optional("norm_w", norm ? std::optional(norm->w) : std::nullopt);
  tiles.add_optional("norm_b", norm ? std::optional(norm->b) : std::nullopt);
  tiles.inputs.push_back(numbers({rows}));
  tiles.constants.insert(
      tiles.constants.end(),
      {{"K", w.columns()},
       {"ONTO", onto},
       {"NORMED", norm != nullptr},
       float_constant("EPS", norm ? norm->eps : 0.0f)});
  if (norm) {
    tiles.outputs.push_back({shape, dtype});
  } else {
    tiles.absent.push_back("normed");
  }
  return launch(tiles, s);
}

ops::Normed tile_linear_norm(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::AddNorm& add,
    mx::Stream s) {
  const auto& [bias, residual, norm, dtype] = add;
  auto out = tile_sum(x, {w, bias, residual, false, &norm, dtype}, s);
  return {out[0], out[1]};
}

mx::array linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  backends::check_linear(x, w, /* on_cpu */ false);
  if (!can_use_gemv(x, w, s) || !is_plain(epilogue)) {
    bool tiles = has_tiles(s) && fits_tiles(x, w, epilogue) && is_small(w);
    return tiles ? gpu::tile_linear(x, w, epilogue, s)
                 : apply_epilogue(product(x, w, s), x, epilogue, s);
  }
  return gemv(x, w, {.epilogue = epilogue}, s);
}

mx::array norm_linear(
    const mx::array& x,
    const ops::Norm& norm,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  backends::check_linear(x, w, /* on_cpu */ false);
  if (can_use_gemv(x, w, s) && !epilogue.snake) {
    return gemv(x, w, {.norm = &norm, .epilogue = epilogue}, s);
  }
  return apply_epilogue(product(apply_norm(x, norm, s), w, s), x, epilogue, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const ops::Norm& norm,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  backends::check_linear(x, gate_up, /* on_cpu */ false);
  return can_use_gemv(x, gate_up, s)
      ? gemv(x, gate_up, {.norm = &norm, .swiglu = true}, s)
      : gated(gpu::norm_linear(x, norm, gate_up, {}, s), s);
}

mx::array decoder_feed_forward(
    const mx::array& x,
    const ops::DecoderLayer& layer,
    mx::Stream s) {
  const auto &up = layer.up, &down = layer.down;
  if (!down.b || !can_use_gemv(x, up.w, s) || !can_use_gemv(x, down.w, s)) {
    return backends::decoder_feed_forward(x, layer, s);
  }
  return decoder_gemvs(x, layer, 1, s);
}

mx::array decoder_gemvs(
    const mx::array& x,
    const ops::DecoderLayer& layer,
    int sequences,
    mx::Stream s) {
  const auto &up = layer.up, &down = layer.down;
  ops::Epilogue inner{
      .bias = up.b,
      .activation = layer.activation.value_or(ops::Activation::none)};
  auto hidden = gemv(
      x,
      up.w,
      {.norm = &layer.ffn_norm,
       .swiglu = !layer.activation,
       .epilogue = inner,
       .sequences = sequences},
      s);
  return gemv(
      hidden,
      down.w,
      {.epilogue = {.bias = down.b, .residual = x}, .sequences = sequences},
      s);
}

} // namespace nightingale::gpu
