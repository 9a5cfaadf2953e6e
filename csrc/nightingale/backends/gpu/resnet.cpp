#include <numeric>

#include "mlx/ops.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/tile_shape.h"

// A residual block is two launches of kernels that multiply by tiles where
// those fit. Elsewhere a kernel lays out the rows of three taps side by side,
// MLX multiplies them, and a kernel applies what follows the product.

namespace nightingale::gpu {

namespace {

constexpr int kTaps = 3;

// [N, ...] as a matrix.
ops::Matrix matrix_of(const mx::array& w) {
  return ops::computed(mx::reshape(w, {w.shape(0), -1}, mx::Device::cpu));
}

int skip_channels(const ops::FrameInput& input) {
  return input.skip ? input.skip->shape(-1) : 0;
}

bool is_readable(const mx::array& x, mx::Dtype dtype) {
  return x.shape(-1) % kTileColumns == 0 && x.size() <= kTileMostNumbers &&
      (x.dtype() == mx::float32 || x.dtype() == dtype);
}

bool can_use_tiles(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    mx::Stream s) {
  auto dtype = input.dtype;
  return has_tiles(s) && conv.matrix && is_half(dtype) &&
      conv.matrix->w.dtype() == dtype && is_readable(input.x, dtype) &&
      (!input.skip || is_readable(*input.skip, dtype)) &&
      fits_whole_rows(conv.matrix->rows()) &&
      conv.matrix->w.size() <= kTileMostWeights;
}

Launch tile_launch(
    const char* kernel,
    const ops::FrameInput& input,
    int channels,
    int inner) {
  int batch = input.layout.batch, frames = row_count(input.x) / batch;
  auto launch = whole_row_launch(kernel, {frames, batch, channels, inner});
  launch.constants.emplace_back("T", input.dtype);
  launch.constants.emplace_back("CX", input.x.shape(-1));
  launch.constants.emplace_back("CS", skip_channels(input));
  return launch;
}

mx::array frame_count(const ops::FrameInput& input) {
  return numbers({row_count(input.x) / input.layout.batch});
}

// mish(layer_norm(conv(x))) (+ shift), [batch * T, O]: one launch.
mx::array tile_conv_norm(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Stream s) {
  const auto& matrix = *conv.matrix;
  int channels = matrix.rows();
  auto tiles = tile_launch("tile_conv_norm", input, channels, matrix.columns());
  tiles.inputs = {
      input.x, matrix.w, conv.b, norm.w, norm.b, frame_count(input)};
  tiles.outputs = {{{row_count(input.x), channels}, input.dtype}};
  tiles.constants.emplace_back("SHIFT", shift.has_value());
  tiles.constants.emplace_back("SEQUENCES", input.layout.sequences());
  tiles.constants.push_back(float_constant("EPS", norm.eps));
  tiles.add_optional("skip", input.skip);
  tiles.add_optional("shift", shift);
  tiles.add_optional("order", input.written);
  return launch_one(tiles, s);
}

ops::Normed tile_resnet(
    const ops::FrameInput& input,
    const ops::Resnet& block,
    const ops::ResnetContext& context,
    mx::Stream s) {
  const auto& second = block.second;
  const auto& next = context.next_norm;
  auto h =
      tile_conv_norm(input, block.first, block.first_norm, context.shift, s);
  int channels = second.b.size();
  int inner = std::gcd(second.matrix->columns(), block.residual_w.columns());
  auto tiles = tile_launch("tile_resnet_sum", input, channels, inner);
  tiles.inputs = {
      h,
      second.matrix->w,
      second.b,
      block.second_norm.w,
      block.second_norm.b,
      input.x,
      block.residual_w.w,
      block.residual_b,
      next.w,
      next.b,
      frame_count(input)};
  mx::Shape shape{row_count(input.x), channels};
  tiles.outputs = {{shape, mx::float32}, {shape, input.dtype}};
  tiles.constants.push_back(float_constant("EPS", block.second_norm.eps));
  tiles.constants.push_back(float_constant("NEXT_EPS", next.eps));
  tiles.add_optional("skip", input.skip);
  auto out = launch(tiles, s);
  return {out[0], out[1]};
}

// [batch * T, 3 * C]: the two frames before each frame, then the frame itself.
mx::array causal_taps(const ops::FrameInput& input, mx::Stream s) {
  const auto& x = input.x;
  int own = x.shape(-1), skip = skip_channels(input), rows = row_count(x);
  int batch = input.layout.batch;
  return launch_one(
      {.kernel = "causal_taps",
       .inputs = {x, input.skip.value_or(x), input.written.value_or(x)},
       .outputs = {{{rows, kTaps * (own + skip)}, input.dtype}},
       .constants = {{"CX", own}, {"CS", skip}},
       .groups = {rows / batch, batch, 1},
       .threads = {256, 128, 64, 32}},
      s);
}

struct NormMish {
  const mx::array& bias;
  const ops::LayerNorm& norm;
  std::optional<mx::array> shift = std::nullopt;
  int taps = 1; // rows of the result laid out side by side
};

// mish(norm(product + bias)) (+ shift) of the product's first columns:
// [batch * T, taps * C]
mx::array norm_mish(
    const ops::FrameInput& input,
    const mx::array& product,
    const NormMish& args,
    mx::Stream s) {
  const auto& [bias, norm, shift, taps] = args;
  int channels = bias.size(), rows = row_count(product);
  int batch = input.layout.batch;
  return launch_one(
      {.kernel = "norm_mish",
       .inputs = {product, bias, norm.w, norm.b, shift.value_or(bias)},
       .outputs = {{{rows, taps * channels}, input.dtype}},
       .constants =
           {{"C", channels},
            {"STRIDE", product.shape(-1)},
            {"TAPS", taps},
            {"SHIFT", shift.has_value()},
            float_constant("EPS", norm.eps)},
       .groups = {rows / batch, batch, 1},
       .threads = {32}},
      s);
}

} // namespace

std::optional<ops::Matrix> causal_conv_matrix(
    const ops::Kernel& w,
    mx::Stream s) {
  bool fits =
      has_row_kernels(w.channels(), s) && has_row_kernels(w.filters(), s);
  return fits ? std::optional(matrix_of(w.matrix.w)) : std::nullopt;
}

ops::Matrix resnet_matrix(const ops::ResnetWeights& weights) {
  // The residual product as a convolution whose first two taps are zero.
  auto cpu = mx::Device::cpu;
  const auto& w = weights.residual_w.w;
  auto zeros = mx::zeros({w.shape(0), kTaps - 1, w.shape(1)}, w.dtype(), cpu);
  auto taps = mx::concatenate({zeros, mx::expand_dims(w, 1, cpu)}, 1, cpu);
  return matrix_of(mx::concatenate({weights.first.w.matrix.w, taps}, 0, cpu));
}

mx::array causal_conv(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    mx::Stream s) {
  if (!conv.matrix) {
    return backends::causal_conv(input, conv, s);
  }
  return gpu::linear(causal_taps(input, s), *conv.matrix, {.bias = conv.b}, s);
}

mx::array normed_conv(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    mx::Stream s) {
  if (!conv.matrix) {
    return backends::normed_conv(input, conv, norm, s);
  }
  if (can_use_tiles(input, conv, s)) {
    return tile_conv_norm(input, conv, norm, std::nullopt, s);
  }
  auto product = gpu::linear(causal_taps(input, s), *conv.matrix, {}, s);
  return norm_mish(input, product, {conv.b, norm}, s);
}

ops::Normed resnet(
    const ops::FrameInput& input,
    const ops::Resnet& block,
    const ops::ResnetContext& context,
    mx::Stream s) {
  if (!block.matrix) {
    return backends::resnet(input, block, context, s);
  }
  if (can_use_tiles(input, block.first, s)) {
    return tile_resnet(input, block, context, s);
  }
  check_one_solution(input.layout);
  const auto &first = block.first, &second = block.second;
  const auto& next = context.next_norm;
  auto both = gpu::linear(causal_taps(input, s), *block.matrix, {}, s);
  auto taps = norm_mish(
      input, both, {first.b, block.first_norm, context.shift, kTaps}, s);
  int channels = second.b.size(), rows = row_count(both);
  mx::Shape shape{rows, channels};
  auto out = launch(
      {.kernel = "resnet_sum",
       .inputs =
           {gpu::linear(taps, *second.matrix, {}, s),
            second.b,
            block.second_norm.w,
            block.second_norm.b,
            both,
            block.residual_b,
            next.w,
            next.b},
       .outputs = {{shape, mx::float32}, {shape, input.dtype}},
       .constants =
           {{"C", channels},
            float_constant("EPS", block.second_norm.eps),
            float_constant("NEXT_EPS", next.eps)},
       .groups = {rows, 1, 1},
       .threads = {32}},
      s);
  return {out[0], out[1]};
}

} // namespace nightingale::gpu
