#include "nightingale/ops/linear.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/quantized_linear.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/error.h"

namespace nightingale::ops {

namespace {

void check(const mx::array& x, const Matrix& w, mx::Stream s) {
  if (x.shape(-1) != w.columns()) {
    throw Error(
        "rows of " + std::to_string(x.shape(-1)) +
        " numbers do not fit a matrix of " + std::to_string(w.columns()) +
        " columns");
  }
  if (w.is_quantized() && w.is_packed() != on_cpu(s)) {
    throw Error(
        std::string("codes made for ") + (w.is_packed() ? "the CPU" : "a GPU") +
        " run there only");
  }
}

} // namespace

mx::array linear(
    const mx::array& x,
    const Matrix& w,
    const Epilogue& epilogue,
    mx::Stream s) {
  check(x, w, s);
  if (!on_cpu(s)) {
    return gpu::linear(x, w, epilogue, s);
  }
  return w.is_quantized() ? cpu::quantized_linear(x, w, epilogue, s)
                          : cpu::linear(x, w.w, epilogue, s);
}

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const Matrix& w,
    mx::Stream s) {
  check(x, w, s);
  if (!on_cpu(s)) {
    return gpu::norm_linear(x, norm, eps, w, s);
  }
  return w.is_quantized() ? cpu::norm_quantized_linear(x, norm, eps, w, s)
                          : cpu::norm_linear(x, norm, eps, w.w, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const Matrix& gate_up,
    mx::Stream s) {
  check(x, gate_up, s);
  if (!on_cpu(s)) {
    return gpu::norm_swiglu(x, norm, eps, gate_up, s);
  }
  return gate_up.is_quantized()
      ? cpu::norm_quantized_swiglu(x, norm, eps, gate_up, s)
      : cpu::norm_swiglu(x, norm, eps, gate_up.w, s);
}

} // namespace nightingale::ops
