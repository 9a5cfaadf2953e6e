#include "nightingale/ops/activation.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array activate(const mx::array& x, Activation activation, mx::Stream s) {
  return on_cpu(s) ? cpu::activate(x, activation, s)
                   : gpu::activate(x, activation, s);
}

mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s) {
  return on_cpu(s) ? cpu::leaky_relu(x, slope, s)
                   : gpu::leaky_relu(x, slope, s);
}

mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s) {
  return on_cpu(s) ? cpu::snake(x, alpha, s) : gpu::snake(x, alpha, s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
  return on_cpu(s) ? cpu::swiglu(gate_up, s) : gpu::swiglu(gate_up, s);
}

mx::array cast(const mx::array& x, mx::Dtype dtype, mx::Stream s) {
  if (x.dtype() == dtype) {
    return x;
  }
  return on_cpu(s) ? cpu::cast(x, dtype, s) : gpu::cast(x, dtype, s);
}

} // namespace nightingale::ops
