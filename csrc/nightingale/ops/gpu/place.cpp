#include "nightingale/ops/gpu/place.h"

#include <optional>

#include "mlx/ops.h"

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
    auto copies = mx::add(
        mx::zeros({4, 2}, mx::int32, s), mx::array({past, capacity}), s);
    last = Place{past, capacity, s, copies};
  }
  return last->array;
}

} // namespace nightingale::gpu
