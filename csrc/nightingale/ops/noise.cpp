#include "nightingale/ops/noise.h"

#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

mx::array
normal_noise(const DrawPosition& first, int rows, int columns, mx::Stream s) {
  return on_cpu(s) ? cpu::normal_noise(first, rows, columns, s)
                   : gpu::normal_noise(first, rows, columns, s);
}

} // namespace nightingale::ops
