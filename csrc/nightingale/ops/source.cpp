#include "nightingale/ops/source.h"

#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

mx::array start_phases(const Cycles& cycles, mx::Stream s) {
  return on_cpu(s) ? cpu::start_phases(cycles, s)
                   : gpu::start_phases(cycles, s);
}

FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s) {
  return on_cpu(s) ? cpu::frame_phases(f0, phases, s)
                   : gpu::frame_phases(f0, phases, s);
}

mx::array harmonic_source(const HarmonicSource& source, mx::Stream s) {
  return on_cpu(s) ? cpu::harmonic_source(source, s)
                   : gpu::harmonic_source(source, s);
}

} // namespace nightingale::ops
