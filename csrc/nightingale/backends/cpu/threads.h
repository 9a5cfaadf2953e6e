#pragma once

#include <cstdint>
#include <type_traits>

namespace nightingale::cpu {

// The one thread count of the CPU backend. 0 means all cores.
void set_threads(int count);
int threads();

// How many pieces of `size` cover `count`.
constexpr int ceil_div(int64_t count, int64_t size) {
  return static_cast<int>((count + size - 1) / size);
}

namespace detail {
using Body = void (*)(void* context, int tile);
void run_tiles(int tiles, Body body, void* context);
} // namespace detail

// Calls body(tile) for every tile in [0, tiles), spread over the threads; the
// caller works too. Tiles are handed out in any order, so that a result must
// not depend on which thread runs which tile. Nested calls run inline. A tile
// must neither throw nor ask for or set the thread count.
template <typename F>
void parallel_for(int tiles, F&& body) {
  using Fn = std::remove_reference_t<F>;
  detail::run_tiles(
      tiles,
      [](void* context, int tile) { (*static_cast<Fn*>(context))(tile); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

} // namespace nightingale::cpu
