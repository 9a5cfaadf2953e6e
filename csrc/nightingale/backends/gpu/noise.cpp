#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"

namespace nightingale::gpu {

mx::array
normal_noise(const DrawPosition& first, int rows, int columns, mx::Stream s) {
  if (!has_kernels(s) || rows == 0 || columns == 0) {
    return reference::normal_noise(first, rows, columns, s);
  }
  DrawKey key = stage_key(first);
  int64_t pairs = int64_t(rows) * ((columns + 1) / 2);
  return launch_one(
      {.kernel = "normal_noise",
       .inputs =
           {pair(key.low, key.high),
            pair(first.position, columns),
            pair(rows, rows)},
       .outputs = {{{rows, columns}, mx::float32}},
       .groups = {chunks_of(pairs), 1, 1},
       .threads = kChunkThreads},
      s);
}

} // namespace nightingale::gpu
