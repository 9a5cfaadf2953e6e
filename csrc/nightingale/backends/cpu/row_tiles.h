#pragma once

#include <algorithm>

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

// Calls body(row) for every row, some rows to a tile.
template <typename F>
void for_rows(int rows, F body) {
  constexpr int per_tile = 16;
  parallel_for(ceil_div(rows, per_tile), [&](int tile) {
    int end = std::min(rows, (tile + 1) * per_tile);
    for (int row = tile * per_tile; row < end; ++row) {
      body(row);
    }
  });
}

} // namespace nightingale::cpu
