#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array rotary(
    const mx::array& x,
    const mx::array& frequencies,
    int past,
    mx::Stream s) {
  int head_dim = 2 * frequencies.shape(0);
  int batch = x.shape(0), length = x.shape(1);
  auto heads = mx::transpose(
      mx::reshape(x, {batch, length, -1, head_dim}, s), {0, 2, 1, 3}, s);
  // MLX takes the inverse: positions per radian.
  auto periods = mx::reciprocal(frequencies, s);
  auto turned = mx::fast::rope(
      heads, head_dim, false, std::nullopt, 1.0f, past, periods, s);
  return mx::reshape(
      mx::transpose(turned, {0, 2, 1, 3}, s), {batch, length, x.shape(2)}, s);
}

} // namespace nightingale::reference
