#pragma once

#include "nightingale/ops/source.h"

namespace nightingale::cpu {

// As in nightingale/ops/source.h. Phases are float64, [2, 9]: the cycles that
// frames have added, modulo 1, and those at the start.
mx::array start_phases(const ops::Cycles& cycles);

ops::FramePhases
frame_phases(const mx::array& f0, const mx::array& phases, mx::Stream s);

} // namespace nightingale::cpu
