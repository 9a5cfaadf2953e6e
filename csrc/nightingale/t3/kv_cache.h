#pragma once

#include <vector>

#include "mlx/array.h"

namespace nightingale {

namespace mx = mlx::core;

// Keys and values of every layer for positions [0, length). A plain value: a
// copy taken earlier still reads its own positions, and trimming is all that
// rewinding takes. Two copies must not both be appended to.
struct KvCache {
  std::vector<mx::array> keys; // each [B, heads, capacity, head_dim]
  std::vector<mx::array> values;
  int length = 0;

  int capacity() const {
    return keys.empty() ? 0 : keys[0].shape(2);
  }

  void trim(int new_length) {
    length = new_length;
  }

  size_t nbytes() const {
    size_t total = 0;
    for (const auto& k : keys) {
      total += 2 * k.nbytes();
    }
    return total;
  }
};

} // namespace nightingale
