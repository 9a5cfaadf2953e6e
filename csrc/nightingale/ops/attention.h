#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Scores are scaled by 1 / sqrt(head_dim) everywhere.

// An empty cache for write_heads. On the CPU its memory is not touched, so that
// a capacity that is never reached costs nothing.
mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s);

// Writes the heads of x into positions [past, past + T) of a cache and returns
// it. The returned array takes over the cache's buffer; the argument must not
// be read past `past` afterwards.
// x: [B, T, heads * head_dim]; cache: [B, heads, capacity, head_dim], any
// floating type.
mx::array
write_heads(const mx::array& cache, const mx::array& x, int past, mx::Stream s);

// Causal attention of T new positions over a cache that already holds them.
// q: [B, T, heads * head_dim]; keys, values: [B, heads, capacity, head_dim],
// of which past + T positions are filled → [B, T, heads * head_dim]
mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s);

// The weights that one head of batch row 0 gives to the positions
// [begin, begin + count), for the last `rows` of the T queries: [rows, count].
// Arguments as in cached_attention; positions after the row's own weigh 0.
mx::array attention_weights(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int head,
    int rows,
    int begin,
    int count,
    mx::Stream s);

// Every query sees every key. q: [B, T, heads * head_dim]; k, v:
// [B, S, heads * head_dim] → [B, T, heads * head_dim]
mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s);

} // namespace nightingale::ops
