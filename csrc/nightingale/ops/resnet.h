#pragma once

#include "nightingale/ops/convolution.h"
#include "nightingale/ops/frame_layout.h"
#include "nightingale/ops/norm.h"

namespace nightingale::ops {

// Networks over frames. Arrays are [batch, T, C] or [batch * T, C]; every op
// here takes both.

struct FrameInput {
  mx::array x;
  FrameLayout layout;
  mx::Dtype dtype; // of the products
  // More channels, to be concatenated to those of x.
  std::optional<mx::array> skip = std::nullopt;
  // As in OdeState, where x is its input.
  std::optional<mx::array> written = std::nullopt;
};

// A convolution over a frame and the two before it.
struct CausalConv {
  Kernel w; // [O, 3, C]
  mx::array b; // [O]
  // [O, 3 * C], where kernels lay out the rows of three taps side by side.
  std::optional<Matrix> matrix = std::nullopt;

  CausalConv(Kernel w, mx::array b, mx::Stream s);
};

// The result has the input's `dtype`.
mx::array
causal_conv(const FrameInput& input, const CausalConv& conv, mx::Stream s);

// mish(layer_norm(causal_conv(x)))
mx::array normed_conv(
    const FrameInput& input,
    const CausalConv& conv,
    const LayerNorm& norm,
    mx::Stream s);

// The weights of a residual block.
struct ResnetWeights {
  CausalConv first;
  LayerNorm first_norm;
  CausalConv second;
  LayerNorm second_norm;
  Matrix residual_w; // [O, C]
  mx::array residual_b; // [O]
};

struct Resnet : ResnetWeights {
  // Without kernels, x and skip are multiplied separately: these are the
  // weights of skip, and first.w and residual_w those of x only.
  std::optional<Kernel> first_skip_w = std::nullopt;
  std::optional<Matrix> residual_skip_w = std::nullopt;
  // With kernels, [2 * O, 3 * C]: first above residual, as CausalConv's matrix.
  std::optional<Matrix> matrix = std::nullopt;

  // skip: how many of the input channels, the last ones, FrameInput::skip has
  Resnet(ResnetWeights weights, int skip);
};

// What surrounds a residual block.
struct ResnetContext {
  mx::array shift; // [O], or [solutions, O]
  LayerNorm next_norm;
};

// sum = normed_conv(normed_conv(x, first) + shift, second) + residual(x),
// float32, and next_norm of it, of the input's `dtype`.
Normed resnet(
    const FrameInput& input,
    const Resnet& block,
    const ResnetContext& context,
    mx::Stream s);

} // namespace nightingale::ops
