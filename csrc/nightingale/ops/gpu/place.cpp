#include "nightingale/ops/gpu/place.h"

#include <optional>

#include "nightingale/ops/gpu/kernel.h"

namespace nightingale::gpu {

mx::array place_of(int past, int capacity, mx::Stream s) {
  struct Place {
    int past, capacity;
    mx::Stream stream;
    mx::array array;
  };
  static thread_local std::optional<Place> last;
  if (!last || last->past != past || last->capacity != capacity ||
      last->stream != s) {
    auto copies = copies_near_gpu(mx::array({past, capacity}), s);
    last = Place{past, capacity, s, copies};
  }
  return last->array;
}

} // namespace nightingale::gpu
