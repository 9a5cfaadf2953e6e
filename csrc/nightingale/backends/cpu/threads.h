#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

namespace nightingale::cpu {

// The one thread count of the CPU backend. 0 means all cores; more than
// kMostThreads are never started, nor more than the system gives.
constexpr int kMostThreads = 1024;
void set_threads(int count);
int threads();

constexpr int ceil_div(int64_t count, int64_t size) {
  return static_cast<int>((count + size - 1) / size);
}

namespace detail {
using Body = void (*)(void* context, int tile);
void run_tiles(int tiles, Body body, void* context);
} // namespace detail

// Calls body(tile) for every tile in [0, tiles), spread over the threads; the
// caller works too. Tiles are handed out in any order, so that a result must
// not depend on which thread runs which tile. Nested calls run inline. What a
// tile throws, as where memory is short, is thrown once all tiles have run or
// thrown. A tile must not ask for or set the thread count.
template <typename F>
void parallel_for(int tiles, F&& body) {
  using Fn = std::remove_reference_t<F>;
  detail::run_tiles(
      tiles,
      [](void* context, int tile) { (*static_cast<Fn*>(context))(tile); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

// Calls body(begin, count) for parts of [0, size), of at most `most` each.
template <typename F>
void for_parts(int64_t size, int most, F body) {
  parallel_for(ceil_div(size, most), [&](int tile) {
    int64_t begin = int64_t(tile) * most;
    body(begin, static_cast<int>(std::min<int64_t>(most, size - begin)));
  });
}

// Calls body(row) for every row, some rows to a tile.
template <typename F>
void for_rows(int rows, F body, int per_tile = 16) {
  for_parts(rows, per_tile, [&](int begin, int count) {
    for (int row = begin; row < begin + count; ++row) {
      body(row);
    }
  });
}

// From now on the calling thread runs all its tiles itself.
void keep_tiles();

// Whether tiles are spread over the threads, as they are at first. While they
// are not, every thread runs its tiles itself: for when the cores have enough
// work of several threads.
void spread_tiles(bool spread);

// A cache line, and the widest vector.
constexpr std::align_val_t kScratchAlignment{64};

struct FreeScratch {
  void operator()(void* buffer) const {
    ::operator delete(buffer, kScratchAlignment);
  }
};

// A buffer of the calling thread that grows and is kept, so that a tile does
// not allocate. Each `Tag` type names one buffer; its content lasts until the
// same thread asks for the same tag again.
template <typename Tag, typename T = float>
T* scratch(size_t count) {
  thread_local std::unique_ptr<void, FreeScratch> buffer;
  thread_local size_t capacity = 0;
  if (count > capacity) {
    capacity = 0;
    buffer.reset(); // first, so that both are never held
    buffer.reset(::operator new(count * sizeof(T), kScratchAlignment));
    capacity = count;
  }
  return static_cast<T*>(buffer.get());
}

} // namespace nightingale::cpu
