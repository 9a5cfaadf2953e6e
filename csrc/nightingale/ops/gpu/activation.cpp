#include "mlx/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::gpu {

mx::array silu(const mx::array& x, mx::Stream s) {
  return mx::multiply(x, mx::sigmoid(x, s), s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
  auto halves = mx::split(gate_up, 2, -1, s);
  return mx::multiply(silu(halves[0], s), halves[1], s);
}

} // namespace nightingale::gpu
