#include "nightingale/ops/spectrum.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

mx::array stft(const mx::array& x, mx::Stream s) {
  return on_cpu(s) ? cpu::stft(x, s) : reference::stft(x, s);
}

mx::array polar_spectrum(const mx::array& x, mx::Stream s) {
  return on_cpu(s) ? cpu::polar_spectrum(x, s)
                   : reference::polar_spectrum(x, s);
}

mx::array istft(const mx::array& x, bool first, bool last, mx::Stream s) {
  return on_cpu(s) ? cpu::istft(x, first, last, s)
                   : reference::istft(x, first, last, s);
}

} // namespace nightingale::ops
