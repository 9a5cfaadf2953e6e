#include "nightingale/backends/gpu/linear.h"

#include "mlx/ops.h"
#include "nightingale/backends/gpu/epilogue.h"
#include "nightingale/backends/gpu/gemv.h"
#include "nightingale/backends/gpu/tile_linear.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::gpu {

namespace {

// x · wᵀ by MLX.
mx::array product(const mx::array& x, const ops::Matrix& w, mx::Stream s) {
  if (!w.is_quantized()) {
    return mx::matmul(x, w.transposed(s), s);
  }
  return mx::quantized_matmul(
      x, w.w, *w.scales, w.biases, true, w.group, w.bits, "affine", s);
}

// Whether nothing but a residual follows the product.
bool is_plain(const ops::Epilogue& epilogue) {
  return !epilogue.bias && !epilogue.snake &&
      epilogue.activation == ops::Activation::none;
}

mx::array norm_gemv(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& w,
    bool swiglu,
    mx::Stream s) {
  auto shape = GemvShape::of(w);
  int rows = row_count(x), columns = swiglu ? w.rows() / 2 : w.rows();
  int block = swiglu ? shape.block / 2 : shape.block;
  auto constants = gemv_constants(w, shape, rows, x.dtype());
  constants.emplace_back("K", w.columns());
  constants.emplace_back("SWIGLU", swiglu);
  constants.push_back(float_constant("EPS", eps));
  Launch norm_gemv{
      .kernel = "norm_gemv",
      .inputs = {x, norm, stored(w)},
      .outputs = {{ops::with_columns(x, columns), x.dtype()}},
      .constants = std::move(constants),
      .groups = {(columns + block - 1) / block, 1, 1},
      .threads = shape.threads};
  return launch_one(norm_gemv, s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
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

mx::array linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  if (!can_use_gemv(x, w, s) || !is_plain(epilogue)) {
    return can_use_tiles(x, w, epilogue, s)
        ? tile_linear(x, w, epilogue, s)
        : apply_epilogue(product(x, w, s), x, epilogue, s);
  }
  auto shape = GemvShape::of(w);
  auto result = epilogue.result_dtype(x);
  auto constants = gemv_constants(w, shape, row_count(x), result);
  constants.emplace_back("K", w.columns());
  constants.emplace_back("RESIDUAL", epilogue.residual.has_value());
  Launch gemv{
      .kernel = "gemv",
      .inputs = {x, stored(w)},
      .outputs = {{ops::with_columns(x, w.rows()), result}},
      .constants = std::move(constants),
      .groups = {(w.rows() + shape.block - 1) / shape.block, 1, 1},
      .threads = shape.threads};
  gemv.add_optional("residual", epilogue.residual);
  return launch_one(gemv, s);
}

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& w,
    mx::Stream s) {
  return can_use_gemv(x, w, s)
      ? norm_gemv(x, norm, eps, w, false, s)
      : product(reference::rms_norm(x, norm, eps, s), w, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  return can_use_gemv(x, gate_up, s)
      ? norm_gemv(x, norm, eps, gate_up, true, s)
      : swiglu(norm_linear(x, norm, eps, gate_up, s), s);
}

} // namespace nightingale::gpu
