#pragma once

#include <vector>

#include "nightingale/error.h"
#include "nightingale/ops/attention.h"

namespace nightingale {

// How a KV cache is kept.
struct KvOptions {
  int bits = 0; // 8 or 4: quantized; 0: the type of the weights
  // The share of the speech positions that heads keep; 0: all of them, and
  // nothing is ever looked for to drop.
  float budget = 0.0f;
};

// Keys and values of every layer for positions [0, length). A plain value: a
// copy taken earlier still reads its own positions, and trimming is all that
// rewinding takes. Two copies must not both be appended to. A cache that drops
// positions cannot be rewound, because they are gone.
struct KvCache {
  std::vector<ops::LayerCache> layers;
  int length = 0;

  int capacity() const {
    return layers.empty() ? 0 : layers[0].keys.shape(2);
  }

  // An Error where that is shorter and positions may have been dropped.
  void trim(int new_length) {
    if (new_length < length && !layers.empty() && layers[0].eviction) {
      throw Error("a KV cache with a budget drops positions: it cannot rewind");
    }
    length = new_length;
  }

  size_t nbytes() const {
    size_t total = 0;
    for (const auto& layer : layers) {
      total += layer.keys.nbytes() + layer.values.nbytes();
    }
    return total;
  }

  // Of the positions that it holds. Waits for them where some were dropped.
  size_t held_bytes() const {
    size_t total = 0;
    for (const auto& layer : layers) {
      const auto& keys = layer.keys;
      int64_t vectors = int64_t(keys.shape(0)) * keys.shape(1) * length;
      if (layer.eviction) {
        auto dropped = layer.eviction->dropped;
        dropped.eval();
        for (size_t i = 0; i < dropped.size(); ++i) {
          vectors -= dropped.data<int>()[i];
        }
      }
      size_t bytes = keys.shape(3) * keys.itemsize();
      total += 2 * vectors * bytes; // as many values
    }
    return total;
  }
};

} // namespace nightingale
