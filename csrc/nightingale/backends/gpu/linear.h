#pragma once

#include <vector>

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/ops.h"

// The kernels behind ops::linear (gemv for one or two rows, tile_linear for
// more), linear_add_norm and feed_forward.

namespace nightingale::gpu {

// Whether the kernels gemv and attention_out take x · wᵀ; without x, whether
// they do where x has one or two rows of floats.
bool can_use_gemv(const mx::array& x, const ops::Matrix& w, mx::Stream s);
bool can_use_gemv(const ops::Matrix& w, mx::Stream s);

// What the kernel gemv takes besides x and w.
struct GemvOptions {
  const ops::Norm* norm = nullptr; // of x
  bool swiglu =
      false; // the gate's half of the products is applied to the other
  ops::Epilogue epilogue = {}; // without Snake
  int sequences = 1; // that share x, as many rows each
};

// The rows of every sequence are computed as they are alone.
mx::array gemv(
    const mx::array& x,
    const ops::Matrix& w,
    const GemvOptions& options,
    mx::Stream s);

// ops::decoder_feed_forward of several sequences, in two launches.
mx::array decoder_gemvs(
    const mx::array& x,
    const ops::DecoderLayer& layer,
    int sequences,
    mx::Stream s);

// Their input `w`.
const mx::array& stored(const ops::Matrix& w);

// How their work is divided: products of one threadgroup, and its sizes.
struct GemvShape {
  int block;
  std::vector<int> threads;

  static GemvShape of(const ops::Matrix& w);
};

// Their constants that describe the matrix and the result.
std::vector<Constant> gemv_constants(
    const ops::Matrix& w,
    const GemvShape& shape,
    int rows,
    mx::Dtype result);

// Whether tile_linear supports this product: 16-bit types, sizes that tiles
// fill, no Snake.
bool fits_tiles(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue);

// Whether products of any number of rows above two are tile_linear's.
bool fits_tiles(const ops::Matrix& w, mx::Dtype dtype);

// ops::linear in one launch. An Error where it does not fit.
decltype(ops::linear) tile_linear;

// The same for tile_linear_norm, whose threadgroups make whole rows.
bool fits_norm_tiles(const mx::array& x, const ops::Matrix& w);

// ops::linear_add_norm in one launch, and whether it should be used on `s`.
decltype(ops::linear_add_norm) tile_linear_norm;
bool can_use_norm_tiles(const mx::array& x, const ops::Matrix& w, mx::Stream s);

// A launch of tile_linear_norm: sum = residual + (x · wᵀ + bias), or where
// `onto` (residual + x · wᵀ) + bias, and with `norm` the norm of the sum, as
// `dtype`.
struct TileSum {
  const ops::Matrix& w;
  const mx::array& bias;
  const mx::array& residual;
  bool onto;
  const ops::LayerNorm* norm;
  mx::Dtype dtype;
};
std::vector<mx::array>
tile_sum(const mx::array& x, const TileSum& args, mx::Stream s);

// wᵀ, as a view that takes no op of MLX's where `w` is evaluated.
mx::array transposed(const mx::array& w, mx::Stream s);

// Whether the kernels that keep a row of `channels` in registers run on `s`.
bool has_row_kernels(int channels, mx::Stream s);

// sum = residual + (x + bias), and its norm: one launch. The results are shaped
// like x: [..., C]
ops::Normed add_norm(const mx::array& x, const ops::AddNorm& add, mx::Stream s);

// Whether the kernel tile_feed_forward supports these.
bool fits_tile_feed_forward(const ops::FeedForward& block, mx::Dtype dtype);
bool fits_tile_feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block);

// One launch, for what fits.
decltype(ops::feed_forward) tile_feed_forward;
decltype(ops::feed_forward_norm) tile_feed_forward_norm;

} // namespace nightingale::gpu
