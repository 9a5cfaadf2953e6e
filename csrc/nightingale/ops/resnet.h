#pragma once

#include "nightingale/ops/convolution.h"
#include "nightingale/ops/norm.h"

namespace nightingale::ops {

// Networks over frames. Arrays are [batch, T, C], or [batch * T, C] where a
// product of two axes is cheaper: whatever an op makes, the next one takes.

// A convolution over a row and the two before it, within its batch row.
struct CausalConv {
  Kernel w; // [O, 3, C]
  mx::array b; // [O]
  // [O, 3 * C]: where the rows of three taps are laid side by side and
  // multiplied.
  std::optional<Matrix> matrix = std::nullopt;

  CausalConv(Kernel w, mx::array b, mx::Stream s);
};

// Products are taken in `dtype`, which is also the result's.
mx::array causal_conv(
    const mx::array& x,
    int batch,
    const CausalConv& conv,
    mx::Dtype dtype,
    mx::Stream s);

// mish(layer_norm(causal_conv(x)))
mx::array normed_conv(
    const mx::array& x,
    int batch,
    const CausalConv& conv,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

// The weights of a residual block.
struct Resnet {
  CausalConv first, second;
  LayerNorm first_norm, second_norm;
  Matrix residual_w; // [O, C]
  mx::array residual_b;
  // Of the channels that come in an array of their own: where products are
  // taken of each array. first.w and residual_w are then of the others only.
  std::optional<Kernel> first_skip_w = std::nullopt;
  std::optional<Matrix> residual_skip_w = std::nullopt;
  // [2 * O, 3 * C]: first and residual below each other, as CausalConv's.
  std::optional<Matrix> matrix = std::nullopt;

  // The last `skip` of the input's channels come in an array of their own.
  Resnet(
      CausalConv first,
      LayerNorm first_norm,
      CausalConv second,
      LayerNorm second_norm,
      Matrix residual_w,
      mx::array residual_b,
      int skip);
};

struct ResnetInput {
  mx::array x;
  std::optional<mx::array> skip = std::nullopt; // beside x
  std::optional<mx::array> written = std::nullopt; // as OdeState has it, of x
};

// sum = normed_conv(normed_conv(x, first) + shift, second) + residual(x),
// float32, and the norm that follows of it, as `dtype`. shift: [O]
Normed resnet(
    const ResnetInput& input,
    int batch,
    const Resnet& block,
    const mx::array& shift,
    const LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s);

} // namespace nightingale::ops
