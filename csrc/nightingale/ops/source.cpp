#include "nightingale/ops/source.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array harmonic_source(
    const mx::array& f0,
    const mx::array& starts,
    const mx::array& noise,
    const mx::array& w,
    const mx::array& b,
    mx::Stream s) {
  return on_cpu(s) ? cpu::harmonic_source(f0, starts, noise, w, b, s)
                   : gpu::harmonic_source(f0, starts, noise, w, b, s);
}

} // namespace nightingale::ops
