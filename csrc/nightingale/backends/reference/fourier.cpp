#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array power_spectrum(const mx::array& frames, mx::Stream) {
  return cpu::power_spectrum(frames, mx::default_stream(mx::Device::cpu));
}

} // namespace nightingale::reference
