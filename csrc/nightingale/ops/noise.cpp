#include "nightingale/ops/noise.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/noise.h"

namespace nightingale::ops {

mx::array normal_noise(
    uint64_t seed,
    DrawStage stage,
    uint32_t sentence,
    uint32_t first,
    int rows,
    int columns,
    mx::Stream s) {
  return on_cpu(s)
      ? cpu::normal_noise(seed, stage, sentence, first, rows, columns, s)
      : gpu::normal_noise(seed, stage, sentence, first, rows, columns, s);
}

} // namespace nightingale::ops
