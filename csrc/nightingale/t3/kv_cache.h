#pragma once

#include <vector>

#include "nightingale/ops/attention.h"

namespace nightingale {

// Keys and values of every layer for positions [0, length). A plain value: a
// copy taken earlier still reads its own positions, and trimming is all that
// rewinding takes. Two copies must not both be appended to.
struct KvCache {
  std::vector<ops::LayerCache> layers;
  int length = 0;

  int capacity() const {
    return layers.empty() ? 0 : layers[0].keys.shape(2);
  }

  void trim(int new_length) {
    length = new_length;
  }

  size_t nbytes() const {
    size_t total = 0;
    for (const auto& layer : layers) {
      total += layer.keys.nbytes() + layer.values.nbytes();
    }
    return total;
  }
};

} // namespace nightingale
