#pragma once

#include "nightingale/ops/decoder.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/feed_forward.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/lstm.h"
#include "nightingale/ops/noise.h"
#include "nightingale/ops/ode.h"
#include "nightingale/ops/resnet.h"
#include "nightingale/ops/rotary.h"
#include "nightingale/ops/sampling.h"
#include "nightingale/ops/shared_frames.h"
#include "nightingale/ops/source.h"
#include "nightingale/ops/spectrum.h"

// What the backends share.

namespace nightingale::backends {

// Sequences of ops, each of which runs on the stream's backend.
#define OP(parameters, name)
#define COMPOSITE(parameters, name) decltype(ops::name) name;
#include "nightingale/backends/ops.inl"

// An Error where x · wᵀ cannot be: the sizes differ, or the weights are
// quantized for the other kind of processor.
void check_linear(const mx::array& x, const ops::Matrix& w, bool on_cpu);

// An Error where solutions share the array: what calls it has no such kernel.
void check_one_solution(const ops::FrameLayout& layout);

// [B, T, heads * head_dim] each, of frames whose batch may be folded into T.
ops::AttentionHeads
split_qkv(const mx::array& qkv, int batch, int heads, mx::Stream s);

float attention_scale(int head_dim);

// [B, T, heads * head_dim] → [B, heads, T, head_dim], and back
mx::array split_heads(const mx::array& x, int heads, mx::Stream s);
mx::array merge_heads(const mx::array& x, mx::Stream s);

// Positions [0, length) of a cache.
mx::array first_positions(const mx::array& cache, int length, mx::Stream s);

} // namespace nightingale::backends
