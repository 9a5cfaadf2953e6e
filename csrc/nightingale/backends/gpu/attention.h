#pragma once

#include "nightingale/backends/gpu/ops.h"

// The kernels behind ops::projected_attention, which write the caches in place,
// and behind ops::frame_attention.

namespace nightingale::gpu {

// Whether decode_attention supports this: one new position of one or two batch
// rows, heads of 64.
bool can_use_decode_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    mx::Stream s);

// How many parts the positions are divided into after `past` others: steps with
// as many parts make the same launches.
int attention_parts(int past);

// Two launches.
decltype(ops::projected_attention) decode_attention;

// One of the sequences of a step.
struct StepSequence {
  const ops::LayerCache& cache;
  int past;
  const ops::AttentionWatch& watch; // of the same heads in all
};

struct StepAttention {
  mx::array out; // like the residual
  mx::array written; // what the next reader of any of the caches depends on
  std::vector<mx::array> weights; // [1, count] of each sequence's heads in turn
};

// The same for one new position of each of up to ops::kSharedSequences
// sequences, with the same number of rows. A sequence has the result that it
// has alone. positions: cache_position of each in turn
StepAttention step_attention(
    const mx::array& qkv,
    const std::optional<mx::array>& frequencies,
    const std::vector<StepSequence>& sequences,
    const mx::array& positions,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s);

// Any number of new positions, heads of 64, no watched heads: a kernel rotates
// and writes the heads, MLX's attention follows.
bool can_use_prefill_attention(const ops::AttentionInput& in, mx::Stream s);
decltype(ops::projected_attention) prefill_attention;

// {past, capacity} for the kernels that write caches, in GPU memory: on CUDA
// numbers written by the host are read over the bus, 1 µs in every launch. It
// is a row of a table made once for each capacity: computed in every step, it
// would make launches that take it wait for two others, which in a CUDA graph
// costs each of them more than 1 µs. All layers of a step get the same array.
mx::array cache_position(int past, int capacity, mx::Stream s);

// The three ways of frame_attention. MLX's fused attention is the fastest, but
// on CUDA it does not support float32: there a kernel splits the heads, and
// matrix products follow. For 16-bit types on CUDA one launch of our own costs
// the host less.
decltype(ops::frame_attention) fused_attention;
decltype(ops::frame_attention) attention_by_products;
decltype(ops::frame_attention) tile_attention;

// Whether tile_attention supports it: 16-bit types, heads of 32 or 64.
bool fits_tile_attention(int head_dim, mx::Dtype dtype);
bool fits_tile_attention(const mx::array& qkv, int heads);

// A ops::FrameLayout for kernels: rows of a sequence, then the lengths.
mx::array frame_extent(int rows, const std::vector<int>& lengths);

} // namespace nightingale::gpu
