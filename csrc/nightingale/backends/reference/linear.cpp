#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  auto rows = w.is_quantized() ? w.dequantized(x.dtype(), s) : w.w;
  auto columns = mx::transpose(rows, s);
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
    const ops::Norm& norm,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  return reference::linear(apply_norm(x, norm, s), w, epilogue, s);
}

mx::array norm_swiglu(
    const mx::array& x,
    const ops::Norm& norm,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  return swiglu(reference::norm_linear(x, norm, gate_up, {}, s), s);
}

} // namespace nightingale::reference
