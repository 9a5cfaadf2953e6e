#include "nightingale/models/t3/kv_cache.h"

#include "nightingale/error.h"

namespace nightingale {

void KvCache::trim(int new_length) {
  if (new_length < length && !layers.empty() && layers[0].eviction) {
    throw Error("a KV cache with a budget drops positions: it cannot rewind");
  }
  length = new_length;
}

size_t KvCache::held_bytes() const {
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

} // namespace nightingale
