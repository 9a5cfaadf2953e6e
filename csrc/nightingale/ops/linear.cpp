#include "nightingale/ops/linear.h"

#include "nightingale/error.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/linear.h"

namespace nightingale::ops {

namespace {

const mx::array& floats(const Matrix& w) {
  if (w.is_quantized()) {
    throw Error(
        "weights of " + std::to_string(w.bits) + " bits run on a GPU only");
  }
  return w.w;
}

} // namespace

mx::array linear(
    const mx::array& x,
    const Matrix& w,
    const Epilogue& epilogue,
    mx::Stream s) {
  return on_cpu(s) ? cpu::linear(x, floats(w), epilogue, s)
                   : gpu::linear(x, w, epilogue, s);
}

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const Matrix& w,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_linear(x, norm, eps, floats(w), s)
                   : gpu::norm_linear(x, norm, eps, w, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const Matrix& gate_up,
    mx::Stream s) {
  return on_cpu(s) ? cpu::norm_swiglu(x, norm, eps, floats(gate_up), s)
                   : gpu::norm_swiglu(x, norm, eps, gate_up, s);
}

} // namespace nightingale::ops
