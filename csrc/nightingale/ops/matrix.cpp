#include "nightingale/ops/matrix.h"

#include <sstream>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "mlx/utils.h"
#include "nightingale/backends/cpu/quantized_format.h"
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

// For what was given as parts of one matrix.
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
    message << "codes of " << bits << " bits are uint32 [N, K * " << bits
            << " / 32], their scales and biases floating [N, K / "
            << Matrix::kGroup << "]; found " << quantized.dtype() << " "
            << quantized.shape() << ", " << scales.dtype() << " "
            << scales.shape() << " and " << biases.dtype() << " "
            << biases.shape();
    throw Error(message.str());
  }
}

// As float16, row-major; an Error where a number becomes infinite.
mx::array as_half(const mx::array& x, mx::Stream s) {
  auto half = mx::contiguous(mx::astype(x, mx::float16, s), false, s);
  if (!mx::all(mx::isfinite(half, s), s).item<bool>()) {
    throw Error("scales and biases of codes must be finite in float16");
  }
  return half;
}

// Numbers are kept in multiples of 16 bytes, as some of MLX's kernels load
// them.
constexpr int kAligned = 8;

int aligned(size_t count) {
  return static_cast<int>((count + kAligned - 1) / kAligned * kAligned);
}

// One after the other, in words.
mx::array in_one(
    const mx::array& quantized,
    const mx::array& scales,
    const mx::array& biases,
    mx::Stream s) {
  auto flat = [&](const mx::array& x) { return mx::reshape(x, {-1}, s); };
  auto padded = [&](const mx::array& x) {
    int missing = aligned(x.size()) - static_cast<int>(x.size());
    auto zero = mx::array(0.0f, scales.dtype());
    auto numbers = flat(mx::astype(x, scales.dtype(), s));
    return mx::pad(numbers, {0, missing}, zero, "constant", s);
  };
  auto numbers = mx::concatenate({padded(scales), padded(biases)}, 0, s);
  auto whole = mx::concatenate(
      {flat(quantized), mx::view(numbers, mx::uint32, s)}, 0, s);
  mx::eval(whole);
  return whole;
}

} // namespace

Matrix Matrix::packed(mx::array w, int rows, int bits) {
  Matrix matrix(std::move(w));
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
  if (on_cpu(s)) {
    auto rows = mx::contiguous(w, false, s);
    mx::eval(rows);
    return packed(cpu::encode_matrix(rows, bits), w.shape(0), bits);
  }
  auto parts = mx::quantize(w, kGroup, bits, "affine", std::nullopt, s);
  return from_quantized(parts[0], parts[1], parts[2], bits, s);
}

Matrix Matrix::from_quantized(
    const mx::array& quantized,
    const mx::array& scales,
    const mx::array& biases,
    int bits,
    mx::Stream s) {
  check_bits(bits);
  check_quantized({quantized, scales, biases}, bits);
  if (on_cpu(s)) {
    QuantizedTensor rows{
        mx::contiguous(quantized, false, s),
        as_half(scales, s),
        as_half(biases, s)};
    mx::eval(rows.quantized, rows.scales, rows.biases);
    return packed(cpu::pack_quantized(rows, bits), quantized.shape(0), bits);
  }
  auto whole = in_one(quantized, scales, biases, s);
  int words = static_cast<int>(quantized.size());
  auto numbers = mx::view(
      mx::slice(whole, {words}, {whole.shape(0)}, s), scales.dtype(), s);
  auto part = [&](int begin) {
    auto end = begin + static_cast<int>(scales.size());
    return mx::reshape(
        mx::slice(numbers, {begin}, {end}, s), scales.shape(), s);
  };
  Matrix matrix(
      mx::reshape(mx::slice(whole, {0}, {words}, s), quantized.shape(), s));
  matrix.scales = part(0);
  matrix.biases = part(aligned(scales.size()));
  matrix.bits = bits;
  matrix.group = kGroup;
  mx::eval(matrix.w, *matrix.scales, *matrix.biases);
  matrix.whole = std::move(whole);
  return matrix;
}

Matrix Matrix::columns_of(int begin, int count, int taps) const {
  auto cpu = mx::Device::cpu;
  auto cut = [&](const mx::array& from, int axis, int first, int length) {
    mx::Shape start(from.ndim(), 0), stop = from.shape();
    start[axis] = first;
    stop[axis] = first + length;
    return mx::contiguous(mx::slice(from, start, stop, cpu), false, cpu);
  };
  if (!is_packed()) {
    if (is_quantized()) {
      throw Error("only codes made for the CPU are cut by columns");
    }
    return computed(cut(w, w.ndim() - 1, begin, count));
  }
  if (begin % kGroup != 0 || count % kGroup != 0) {
    throw Error("codes are cut between groups of " + std::to_string(kGroup));
  }
  auto parts = mx::reshape(w, {w.shape(0), taps, -1, w.shape(2)}, cpu);
  auto some = cut(parts, 2, begin / kGroup, count / kGroup);
  auto flat = mx::reshape(some, {w.shape(0), -1, w.shape(2)}, cpu);
  return packed(computed(flat), packed_rows_, bits);
}

QuantizedTensor Matrix::unpacked() const {
  if (!is_quantized()) {
    throw Error("a matrix of floats has no codes");
  }
  return is_packed() ? cpu::unpack_quantized(w, rows(), bits)
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

mx::array Matrix::transposed(mx::Stream s) const {
  bool plain = w.status() == mx::array::Status::available && w.ndim() == 2 &&
      w.flags().row_contiguous;
  if (!plain) {
    return mx::transpose(w, s);
  }
  mx::array view({w.shape(1), w.shape(0)}, w.dtype(), nullptr, {});
  bool vector = w.shape(0) == 1 || w.shape(1) == 1;
  view.copy_shared_buffer(
      w, {1, w.shape(1)}, {true, vector, true}, w.data_size());
  view.set_status(mx::array::Status::available);
  return view;
}

} // namespace nightingale::ops
