#include "nightingale/ops/spectrum.h"

#include <stdexcept>
#include <string>

#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

mx::array stft(const mx::array& x, mx::Stream s) {
  return on_cpu(s) ? cpu::stft(x, s) : gpu::stft(x, s);
}

mx::array polar_spectrum(const mx::array& x, mx::Stream s) {
  return on_cpu(s) ? cpu::polar_spectrum(x, s) : gpu::polar_spectrum(x, s);
}

mx::array istft(const mx::array& x, SignalEnds ends, mx::Stream s) {
  return on_cpu(s) ? cpu::istft(x, ends, s) : gpu::istft(x, ends, s);
}

StreamOutput centred_stft(const FrameSpan& x, SignalEnds ends, mx::Stream s) {
  return on_cpu(s) ? reference::centred_stft(x, ends, s)
                   : gpu::centred_stft(x, ends, s);
}

StreamOutput
waveform(const FrameSpan& x, SignalEnds ends, float limit, mx::Stream s) {
  return on_cpu(s) ? reference::waveform(x, ends, limit, s)
                   : gpu::waveform(x, ends, limit, s);
}

mx::array power_spectrum(const mx::array& frames, mx::Stream s) {
  int size = frames.shape(-1);
  if (size < 2 || size % 2 != 0) {
    throw std::invalid_argument(
        "power_spectrum takes frames of an even number of samples, found " +
        std::to_string(size));
  }
  return cpu::power_spectrum(
      frames, on_cpu(s) ? s : mx::default_stream(mx::Device::cpu));
}

} // namespace nightingale::ops
