#pragma once

#include <cstddef>

#include "mlx/allocator.h"

namespace nightingale {

namespace mx = mlx::core;

// Memory of MLX's allocator. MLX hands out a null pointer where the system has
// no more; here that is an Error with the size.
mx::allocator::Data allocate(size_t nbytes);

[[noreturn]] void fail_to_allocate(size_t nbytes);

// Throws an Error where the system would not give so much now. For the sake of
// libraries that crash without memory; nothing is taken.
void require_room(size_t nbytes);

// MLX uses what its allocator gives without looking whether it is there; what
// its own ops need within one call is less than this.
constexpr size_t kMlxRoom = size_t(64) << 20;

// The same as a block for many weights, in huge pages where there are any.
mx::allocator::Data allocate_block(size_t nbytes);

// The size of the block that follows one of `before` bytes, 0 for the first.
// Blocks grow, so that a small model does not ask for a large one's memory.
constexpr size_t kLargestBlock = size_t(256) << 20;
size_t next_block_size(size_t before);

// Gives memory that was freed back to the system, where the C library keeps it
// for this process: glibc has a heap for each of many threads.
void release_freed_memory();

} // namespace nightingale
