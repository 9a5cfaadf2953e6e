#pragma once

#include "nightingale/ops/source.h"

namespace nightingale::gpu {

// As in nightingale/ops/source.h, where kernels run: one launch each. Phases
// are whole numbers of 2^-64 cycles.
mx::array start_phases(const ops::Cycles& cycles);

ops::FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s);

mx::array harmonic_source(
    const mx::array& f0,
    const mx::array& starts,
    const mx::array& noise,
    const mx::array& w,
    const mx::array& b,
    mx::Stream s);

} // namespace nightingale::gpu
