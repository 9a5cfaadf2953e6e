#include "mlx/ops.h"
#include "nightingale/backends/reference/epilogue.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array apply_epilogue(
    mx::array y,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  if (epilogue.bias) {
    y = mx::add(y, *epilogue.bias, s);
  }
  y = reference::activate(y, epilogue.activation, s);
  if (epilogue.snake) {
    y = snake(y, *epilogue.snake, s);
  }
  if (epilogue.residual) {
    y = mx::add(*epilogue.residual, y, s);
  }
  return mx::astype(y, epilogue.result_dtype(x), s);
}

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  auto columns = mx::transpose(w, s);
  bool plain = epilogue.bias && epilogue.bias->dtype() == x.dtype();
  if (!plain) {
    return apply_epilogue(mx::matmul(x, columns, s), x, epilogue, s);
  }
  ops::Epilogue rest = epilogue;
  rest.bias = std::nullopt;
  auto y = mx::addmm(*epilogue.bias, x, columns, 1.0f, 1.0f, s);
  return apply_epilogue(y, x, rest, s);
}

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& w,
    mx::Stream s) {
  return linear(rms_norm(x, norm, eps, s), w, {}, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& gate_up,
    mx::Stream s) {
  return swiglu(norm_linear(x, norm, eps, gate_up, s), s);
}

} // namespace nightingale::reference
