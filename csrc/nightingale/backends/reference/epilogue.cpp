#include "mlx/ops.h"
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

} // namespace nightingale::reference
