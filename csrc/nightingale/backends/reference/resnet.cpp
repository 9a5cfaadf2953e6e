#include "mlx/ops.h"
#include "nightingale/backends/signal_ops.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/linear.h"

namespace nightingale::reference {

namespace {

constexpr ops::Conv1d kCausal{.pad_left = 2};

// As [batch, T, C] of the input's dtype.
mx::array
frames_of(const ops::FrameInput& input, const mx::array& x, mx::Stream s) {
  auto typed = ops::cast(x, input.dtype, s);
  return x.ndim() == 3 ? typed
                       : mx::reshape(typed, {input.batch, -1, x.shape(1)}, s);
}

} // namespace

mx::array causal_conv(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    mx::Stream s) {
  auto frames = frames_of(input, input.x, s);
  return ops::conv1d(frames, conv.w, {kCausal, {.bias = conv.b}}, s);
}

mx::array normed_conv(
    const ops::FrameInput& input,
    const ops::CausalConv& conv,
    const ops::LayerNorm& norm,
    mx::Stream s) {
  auto y = ops::causal_conv(input, conv, s);
  return ops::norm_mish(y, norm, std::nullopt, input.dtype, s);
}

ops::Normed resnet(
    const ops::FrameInput& input,
    const ops::Resnet& block,
    const ops::ResnetContext& context,
    mx::Stream s) {
  const auto &first = block.first, &second = block.second;
  auto x = frames_of(input, input.x, s);
  ops::Epilogue first_sum{.bias = first.b};
  std::optional<mx::array> skip;
  if (input.skip) {
    skip = frames_of(input, *input.skip, s);
    first_sum = {
        .residual = ops::conv1d(
            *skip, *block.first_skip_w, {kCausal, {.bias = first.b}}, s)};
  }
  auto h = ops::conv1d(x, first.w, {kCausal, first_sum}, s);
  h = ops::norm_mish(h, block.first_norm, context.shift, input.dtype, s);
  h = ops::conv1d(h, second.w, {kCausal, {.bias = second.b}}, s);
  h = ops::norm_mish(h, block.second_norm, std::nullopt, mx::float32, s);
  if (skip) {
    h = ops::linear(*skip, *block.residual_skip_w, {.residual = h}, s);
  }
  auto sum = ops::linear(
      x, block.residual_w, {.bias = block.residual_b, .residual = h}, s);
  return {sum, ops::layer_norm(sum, context.next_norm, input.dtype, s)};
}

} // namespace nightingale::reference
