#include "nightingale/ops/convolution.h"

#include "mlx/ops.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/quantized_convolution.h"
#include "nightingale/backends/gpu/convolution.h"
#include "nightingale/error.h"

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
    const Conv1d& shape,
    const Epilogue& epilogue,
    mx::Stream s) {
  if (!w.is_quantized()) {
    return on_cpu(s) ? cpu::conv1d(x, w.matrix.w, shape, epilogue, s)
                     : gpu::conv1d(x, w.matrix.w, shape, epilogue, s);
  }
  if (!on_cpu(s) || !w.matrix.is_packed()) {
    throw Error("convolutions run in codes on the CPU only");
  }
  if (x.shape(2) != w.channels() || shape.groups != 1) {
    throw Error(
        "rows of " + std::to_string(x.shape(2)) + " numbers in " +
        std::to_string(shape.groups) + " groups do not fit a kernel in codes " +
        "of " + std::to_string(w.channels()) + " channels");
  }
  return cpu::code_conv1d(x, w, shape, epilogue, s);
}

mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ConvTranspose1d& shape,
    mx::Stream s) {
  return on_cpu(s) ? cpu::conv_transpose1d(x, w, bias, shape, s)
                   : gpu::conv_transpose1d(x, w, bias, shape, s);
}

} // namespace nightingale::ops
