#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/graph/ops.h"

namespace nightingale::graph {

mx::array power_spectrum(const mx::array& frames, mx::Stream) {
  return cpu::power_spectrum(frames, mx::default_stream(mx::Device::cpu));
}

} // namespace nightingale::graph
