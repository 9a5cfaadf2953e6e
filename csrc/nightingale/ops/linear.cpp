#include "nightingale/ops/linear.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array linear(
    const mx::array& x,
    const Matrix& w,
    const Epilogue& epilogue,
    mx::Stream s) {
  return on_cpu(s) ? cpu::linear(x, w, epilogue, s)
                   : gpu::linear(x, w, epilogue, s);
}

mx::array norm_linear(
    const mx::array& x,
    const RmsNorm& norm,
    const Matrix& w,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_linear(x, norm, w, s)
                   : gpu::norm_linear(x, norm, w, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const RmsNorm& norm,
    const Matrix& gate_up,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_swiglu(x, norm, gate_up, s)
                   : gpu::norm_swiglu(x, norm, gate_up, s);
}

} // namespace nightingale::ops
