#include "nightingale/ops/convolution.h"

#include "mlx/ops.h"
#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

Kernel Kernel::quantized(const mx::array& w, int bits, mx::Stream s) {
  auto rows = mx::reshape(w, {w.shape(0), w.shape(1) * w.shape(2)}, s);
  return {Matrix::quantized(rows, bits, s), w.shape(1)};
}

Kernel Kernel::channels_of(int begin, int count) const {
  return {matrix.columns_of(begin, count, taps), taps};
}

Matrix Kernel::one_tap() const {
  return is_quantized()
      ? matrix
      : Matrix(computed(mx::squeeze(matrix.w, 1, mx::Device::cpu)));
}

mx::array conv1d(
    const mx::array& x,
    const Kernel& w,
    const ConvOptions& options,
    mx::Stream s) {
  return on_cpu(s) ? cpu::conv1d(x, w, options, s)
                   : gpu::conv1d(x, w, options, s);
}

mx::array conv_transpose1d(
    const mx::array& x,
    const TransposedFilters& filters,
    const ConvTranspose1d& shape,
    mx::Stream s) {
  return on_cpu(s) ? cpu::conv_transpose1d(x, filters, shape, s)
                   : gpu::conv_transpose1d(x, filters, shape, s);
}

} // namespace nightingale::ops
