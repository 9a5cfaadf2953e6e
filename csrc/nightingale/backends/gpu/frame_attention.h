#pragma once

#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::gpu {

// As in nightingale/ops/frame_attention.h.
mx::array
frame_attention(const mx::array& qkv, int batch, int heads, mx::Stream s);

// The three ways of it. MLX's fused attention is the faster, but for float32 on
// CUDA it has none: there the heads are laid out by a kernel, and multiplied.
// Of 16-bit numbers on CUDA one launch of our own costs the host less.
mx::array
fused_attention(const mx::array& qkv, int batch, int heads, mx::Stream s);
mx::array
attention_by_products(const mx::array& qkv, int batch, int heads, mx::Stream s);

mx::array
tile_attention(const mx::array& qkv, int batch, int heads, mx::Stream s);

// Whether tile_attention is for it: 16-bit numbers, heads of 32 or 64.
bool fits_tile_attention(const mx::array& qkv, int heads);

// By products in float32, whatever the type: there are few frames.
mx::array relative_frame_attention(
    const mx::array& qkv,
    const mx::array& positions,
    const mx::array& content_bias,
    const mx::array& position_bias,
    int heads,
    mx::Stream s);

// [1, 1, heads, rows, head_dim] for each layer, float32: one product.
std::vector<mx::array> project_positions(
    const mx::array& x,
    const mx::array& w,
    int layers,
    int heads,
    mx::Stream s);

} // namespace nightingale::gpu
