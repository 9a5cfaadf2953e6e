#include "nightingale/ops/convolution.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const Conv1d& shape,
    mx::Stream s) {
  return on_cpu(s) ? cpu::conv1d(x, w, shape, s) : gpu::conv1d(x, w, shape, s);
}

} // namespace nightingale::ops
