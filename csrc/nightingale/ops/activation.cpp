#include "nightingale/ops/activation.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array silu(const mx::array& x, mx::Stream s) {
  return on_cpu(s) ? cpu::silu(x, s) : gpu::silu(x, s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
  return on_cpu(s) ? cpu::swiglu(gate_up, s) : gpu::swiglu(gate_up, s);
}

} // namespace nightingale::ops
