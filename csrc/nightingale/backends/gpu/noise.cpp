#include "nightingale/backends/gpu/noise.h"

#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::gpu {

mx::array normal_noise(
    uint64_t seed,
    DrawStage stage,
    uint32_t sentence,
    uint32_t first,
    int rows,
    int columns,
    mx::Stream s) {
  if (!has_kernels(s) || rows == 0 || columns == 0) {
    return reference::normal_noise(
        seed, stage, sentence, first, rows, columns, s);
  }
  // Of draw_key, what is the same for every row.
  DrawKey root{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  DrawKey branch = threefry(root, {static_cast<uint32_t>(stage), sentence});
  int64_t pairs = int64_t(rows) * ((columns + 1) / 2);
  return launch_one(
      {.kernel = "normal_noise",
       .inputs =
           {pair(branch.low, branch.high),
            pair(first, columns),
            pair(rows, rows)},
       .outputs = {{{rows, columns}, mx::float32}},
       .groups = {chunks_of(pairs), 1, 1},
       .threads = kChunkThreads},
      s);
}

} // namespace nightingale::gpu
