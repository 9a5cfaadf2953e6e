#include "nightingale/ops/source.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/phases.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/source.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

namespace {

bool by_kernel(const mx::Stream& s) {
  return !on_cpu(s) && gpu::has_kernels(s);
}

} // namespace

mx::array start_phases(const Cycles& cycles, mx::Stream s) {
  return by_kernel(s) ? gpu::start_phases(cycles) : cpu::start_phases(cycles);
}

FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s) {
  return by_kernel(s) ? gpu::frame_phases(f0, phases, s)
                      : cpu::frame_phases(f0, phases, s);
}

mx::array harmonic_source(
    const mx::array& f0,
    const mx::array& starts,
    const mx::array& noise,
    const mx::array& w,
    const mx::array& b,
    mx::Stream s) {
  if (by_kernel(s)) {
    return gpu::harmonic_source(f0, starts, noise, w, b, s);
  }
  return on_cpu(s) ? cpu::harmonic_source(f0, starts, noise, w, b, s)
                   : reference::harmonic_source(f0, starts, noise, w, b, s);
}

} // namespace nightingale::ops
