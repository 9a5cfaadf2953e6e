#include "nightingale/ops/matrix.h"

#include <sstream>

#include "mlx/ops.h"
#include "mlx/utils.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/error.h"

namespace nightingale::ops {

namespace {

void check_bits(int bits) {
  if (bits != 8 && bits != 4) {
    throw Error("weights take 8 or 4 bits, not " + std::to_string(bits));
  }
}

bool is_floating(const mx::array& x) {
  return mx::issubdtype(x.dtype(), mx::floating);
}

void check_quantized(const QuantizedTensor& given, int bits) {
  const auto& [quantized, scales, biases] = given;
  bool fits = quantized.dtype() == mx::uint32 && quantized.ndim() == 2 &&
      is_floating(scales) && is_floating(biases) && scales.ndim() == 2 &&
      scales.shape() == biases.shape() &&
      scales.shape(0) == quantized.shape(0) &&
      scales.shape(1) * Matrix::kGroup == quantized.shape(1) * 32 / bits &&
      quantized.shape(1) * 32 % (bits * Matrix::kGroup) == 0;
  if (!fits) {
    std::ostringstream message;
    message << bits << "-bit quantized weights are uint32 [N, K * " << bits
            << " / 32], their scales and biases floating [N, K / "
            << Matrix::kGroup << "]; found " << quantized.dtype() << " "
            << quantized.shape() << ", " << scales.dtype() << " "
            << scales.shape() << " and " << biases.dtype() << " "
            << biases.shape();
    throw Error(message.str());
  }
}

} // namespace

Matrix Matrix::packed(mx::array tiles, int rows, int bits) {
  Matrix matrix(std::move(tiles));
  matrix.bits = bits;
  matrix.group = kGroup;
  matrix.packed_rows_ = rows;
  return matrix;
}

Matrix Matrix::quantized(const mx::array& w, int bits, mx::Stream s) {
  check_bits(bits);
  if (w.shape(1) % kGroup != 0) {
    throw Error(
        "a matrix of " + std::to_string(w.shape(1)) +
        " columns cannot be quantised in groups of " + std::to_string(kGroup));
  }
  return on_cpu(s) ? cpu::quantize_matrix(w, bits, s)
                   : gpu::quantize_matrix(w, bits, s);
}

Matrix Matrix::from_quantized(
    const mx::array& quantized,
    const mx::array& scales,
    const mx::array& biases,
    int bits,
    mx::Stream s) {
  QuantizedTensor tensor{quantized, scales, biases};
  check_bits(bits);
  check_quantized(tensor, bits);
  return on_cpu(s) ? cpu::pack_matrix(tensor, bits, s)
                   : gpu::pack_matrix(tensor, bits, s);
}

Matrix Matrix::columns_of(int begin, int count, int taps) const {
  if (is_packed()) {
    return cpu::packed_columns(*this, begin, count, taps);
  }
  if (is_quantized()) {
    throw Error("only weights quantized for the CPU are cut by columns");
  }
  auto cpu = mx::Device::cpu;
  mx::Shape start(w.ndim(), 0), stop = w.shape();
  start.back() = begin;
  stop.back() = begin + count;
  return computed(mx::contiguous(mx::slice(w, start, stop, cpu), false, cpu));
}

QuantizedTensor Matrix::unpacked() const {
  if (!is_quantized()) {
    throw Error("the matrix is not quantized");
  }
  return is_packed() ? cpu::unpack_matrix(*this)
                     : QuantizedTensor{w, *scales, *biases};
}

mx::array Matrix::dequantized(mx::Dtype dtype, mx::Stream s) const {
  auto [quantized, scales, biases] = unpacked();
  auto floats = mx::dequantize(
      quantized,
      mx::astype(scales, mx::float32, s),
      mx::astype(biases, mx::float32, s),
      kGroup,
      bits,
      "affine",
      std::nullopt,
      mx::float32,
      s);
  return mx::astype(floats, dtype, s);
}

} // namespace nightingale::ops
