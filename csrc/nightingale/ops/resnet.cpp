#include "nightingale/ops/resnet.h"

#include "mlx/ops.h"
#include "nightingale/backends/gpu/resnet.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/linear.h"

namespace nightingale::ops {

namespace {

constexpr int kTaps = 3;
constexpr Conv1d kCausal{.pad_left = kTaps - 1};

// [N, ...] of two axes.
Matrix matrix_of(const mx::array& w) {
  return computed(mx::reshape(w, {w.shape(0), -1}, mx::Device::cpu));
}

// A product of one row, as one of three whose other taps are zero, below one of
// three.
mx::array stacked(const mx::array& conv_w, const mx::array& row_w) {
  auto cpu = mx::Device::cpu;
  auto zeros = mx::zeros(
      {row_w.shape(0), kTaps - 1, row_w.shape(1)}, row_w.dtype(), cpu);
  auto taps = mx::concatenate({zeros, mx::expand_dims(row_w, 1, cpu)}, 1, cpu);
  return computed(mx::concatenate({conv_w, taps}, 0, cpu));
}

// As [batch, T, C] of `dtype`.
mx::array
frames_of(const mx::array& x, int batch, mx::Dtype dtype, mx::Stream s) {
  auto typed = cast(x, dtype, s);
  return x.ndim() == 3 ? typed : mx::reshape(typed, {batch, -1, x.shape(1)}, s);
}

} // namespace

CausalConv::CausalConv(Kernel w_, mx::array b_, mx::Stream s)
    : w(std::move(w_)), b(std::move(b_)) {
  if (!on_cpu(s) && gpu::has_resnet(w.channels(), w.filters(), s)) {
    matrix = matrix_of(w.matrix.w);
  }
}

mx::array causal_conv(
    const mx::array& x,
    int batch,
    const CausalConv& conv,
    mx::Dtype dtype,
    mx::Stream s) {
  if (conv.matrix) {
    return gpu::causal_conv(x, batch, conv, dtype, s);
  }
  auto frames = frames_of(x, batch, dtype, s);
  return conv1d(frames, conv.w, kCausal, {.bias = conv.b}, s);
}

mx::array normed_conv(
    const mx::array& x,
    int batch,
    const CausalConv& conv,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  if (conv.matrix) {
    return gpu::normed_conv(x, batch, conv, norm, dtype, s);
  }
  auto y = causal_conv(x, batch, conv, dtype, s);
  return norm_mish(y, norm, std::nullopt, dtype, s);
}

Resnet::Resnet(
    CausalConv first_,
    LayerNorm first_norm_,
    CausalConv second_,
    LayerNorm second_norm_,
    Matrix residual_w_,
    mx::array residual_b_,
    int skip)
    : first(std::move(first_)),
      second(std::move(second_)),
      first_norm(std::move(first_norm_)),
      second_norm(std::move(second_norm_)),
      residual_w(std::move(residual_w_)),
      residual_b(std::move(residual_b_)) {
  if (first.matrix && second.matrix) {
    matrix = matrix_of(stacked(first.w.matrix.w, residual_w.w));
  } else if (skip > 0) {
    int own = residual_w.columns() - skip;
    first_skip_w = first.w.channels_of(own, skip);
    first.w = first.w.channels_of(0, own);
    residual_skip_w = residual_w.columns_of(own, skip);
    residual_w = residual_w.columns_of(0, own);
  }
}

Normed resnet(
    const ResnetInput& input,
    int batch,
    const Resnet& block,
    const mx::array& shift,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  if (block.matrix) {
    return gpu::resnet(input, batch, block, shift, norm, dtype, s);
  }
  const auto &first = block.first, &second = block.second;
  auto x = frames_of(input.x, batch, dtype, s);
  Epilogue first_sum{.bias = first.b};
  std::optional<mx::array> beside;
  if (input.skip) {
    beside = frames_of(*input.skip, batch, dtype, s);
    first_sum = {
        .residual = conv1d(
            *beside, *block.first_skip_w, kCausal, {.bias = first.b}, s)};
  }
  auto h = conv1d(x, first.w, kCausal, first_sum, s);
  h = norm_mish(h, block.first_norm, shift, dtype, s);
  h = conv1d(h, second.w, kCausal, {.bias = second.b}, s);
  h = norm_mish(h, block.second_norm, std::nullopt, mx::float32, s);
  if (beside) {
    h = linear(*beside, *block.residual_skip_w, {.residual = h}, s);
  }
  auto sum =
      linear(x, block.residual_w, {.bias = block.residual_b, .residual = h}, s);
  return {sum, layer_norm(sum, norm, dtype, s)};
}

} // namespace nightingale::ops
