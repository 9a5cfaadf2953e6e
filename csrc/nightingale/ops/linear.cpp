#include "nightingale/ops/linear.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const Epilogue& epilogue,
    mx::Stream s) {
  return on_cpu(s) ? cpu::linear(x, w, epilogue, s)
                   : gpu::linear(x, w, epilogue, s);
}

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& w,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_linear(x, norm, eps, w, s)
                   : gpu::norm_linear(x, norm, eps, w, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& gate_up,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_swiglu(x, norm, eps, gate_up, s)
                   : gpu::norm_swiglu(x, norm, eps, gate_up, s);
}

} // namespace nightingale::ops
