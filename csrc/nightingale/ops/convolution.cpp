#include "nightingale/ops/convolution.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/convolution.h"

namespace nightingale::ops {

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const Conv1d& shape,
    const Epilogue& epilogue,
    mx::Stream s) {
  return on_cpu(s) ? cpu::conv1d(x, w, shape, epilogue, s)
                   : gpu::conv1d(x, w, shape, epilogue, s);
}

mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ConvTranspose1d& shape,
    mx::Stream s) {
  return on_cpu(s) ? cpu::conv_transpose1d(x, w, bias, shape, s)
                   : gpu::conv_transpose1d(x, w, bias, shape, s);
}

} // namespace nightingale::ops
