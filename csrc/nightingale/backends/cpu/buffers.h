#pragma once

#include <cstddef>
#include <cstdint>

#include "mlx/allocator.h"
#include "nightingale/ops/backend.h"

// The memory of the CPU ops' results. Ops of one utterance ask for the same few
// sizes over and over; buffers that are given back are kept for the next one,
// so that no page is returned to the system and faulted in again. Any thread
// may take and give back.

namespace nightingale::cpu {

// Room for `bytes`, which may be 0, from line_offset() on; comes back to the
// pool when the last array that holds it is gone.
mx::allocator::Data pooled_data(size_t bytes);

// Bytes before the first cache line that begins in a buffer. MLX's begin 8
// bytes behind a multiple of 16, where every load of a whole line would touch
// two.
size_t line_offset(mx::allocator::Buffer buffer);

// Whether pooled_data(bytes) would find a buffer.
bool has_idle(size_t bytes);

// What the pool keeps and nobody uses.
size_t idle_bytes();

// Above this what has been idle for longest is freed; 256 MB unless set.
void set_idle_limit(size_t bytes);

// How often since the start the pool had to ask MLX's allocator.
uint64_t system_allocations();

// Gives what has been idle for longest back to the system, until no more than
// `keep` bytes are idle.
void trim(size_t keep = 0);

} // namespace nightingale::cpu
