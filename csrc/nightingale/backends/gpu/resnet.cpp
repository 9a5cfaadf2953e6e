#include "nightingale/backends/gpu/resnet.h"

#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/gpu/tile_resnet.h"

namespace nightingale::gpu {

namespace {

constexpr int kTaps = 3;

// [batch * T, 3 * C]: each frame behind the two before it.
mx::array causal_taps(
    const ops::ResnetInput& input,
    int batch,
    mx::Dtype dtype,
    mx::Stream s) {
  const auto& x = input.x;
  int own = x.shape(-1), beside = input.skip ? input.skip->shape(-1) : 0;
  int rows = row_count(x);
  return launch_one(
      {.kernel = "causal_taps",
       .inputs = {x, input.skip.value_or(x), input.written.value_or(x)},
       .outputs = {{{rows, kTaps * (own + beside)}, dtype}},
       .constants = {{"CX", own}, {"CS", beside}},
       .groups = {rows / batch, batch, 1},
       .threads = {256, 128, 64, 32}},
      s);
}

// norm_mish of the first columns of a product and its bias, `taps` of its rows
// side by side: [batch * T, taps * C]
mx::array norm_mish(
    const mx::array& product,
    int batch,
    const mx::array& bias,
    const ops::LayerNorm& norm,
    const std::optional<mx::array>& shift,
    int taps,
    mx::Dtype dtype,
    mx::Stream s) {
  int channels = bias.size(), rows = row_count(product);
  return launch_one(
      {.kernel = "norm_mish",
       .inputs = {product, bias, norm.w, norm.b, shift.value_or(bias)},
       .outputs = {{{rows, taps * channels}, dtype}},
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

bool has_resnet(int inputs, int channels, mx::Stream s) {
  return has_row_kernels(inputs, s) && has_row_kernels(channels, s);
}

mx::array causal_conv(
    const mx::array& x,
    int batch,
    const ops::CausalConv& conv,
    mx::Dtype dtype,
    mx::Stream s) {
  auto taps = causal_taps({x}, batch, dtype, s);
  return gpu::linear(taps, *conv.matrix, {.bias = conv.b}, s);
}

mx::array normed_conv(
    const mx::array& x,
    int batch,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  if (can_use_tile_conv({x}, conv, dtype, s)) {
    return tile_conv_norm({x}, batch, conv, norm, std::nullopt, dtype, s);
  }
  auto product =
      gpu::linear(causal_taps({x}, batch, dtype, s), *conv.matrix, {}, s);
  return norm_mish(product, batch, conv.b, norm, std::nullopt, 1, dtype, s);
}

ops::Normed resnet(
    const ops::ResnetInput& input,
    int batch,
    const ops::Resnet& block,
    const mx::array& shift,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  if (can_use_tile_conv(input, block.first, dtype, s)) {
    return tile_resnet(input, batch, block, shift, norm, dtype, s);
  }
  const auto &first = block.first, &second = block.second;
  auto both =
      gpu::linear(causal_taps(input, batch, dtype, s), *block.matrix, {}, s);
  auto taps =
      norm_mish(both, batch, first.b, block.first_norm, shift, kTaps, dtype, s);
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
            norm.w,
            norm.b},
       .outputs = {{shape, mx::float32}, {shape, dtype}},
       .constants =
           {{"C", channels},
            float_constant("EPS", block.second_norm.eps),
            float_constant("NEXT_EPS", norm.eps)},
       .groups = {rows, 1, 1},
       .threads = {32}},
      s);
  return {out[0], out[1]};
}

} // namespace nightingale::gpu
