#include "nightingale/ops/fourier.h"

#include <stdexcept>
#include <string>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

mx::array power_spectrum(const mx::array& frames, mx::Stream s) {
  int size = frames.shape(-1);
  if (size < 2 || size % 2 != 0) {
    throw std::invalid_argument(
        "power_spectrum takes frames of an even number of samples, found " +
        std::to_string(size));
  }
  return on_cpu(s) ? cpu::power_spectrum(frames, s)
                   : reference::power_spectrum(frames, s);
}

} // namespace nightingale::ops
