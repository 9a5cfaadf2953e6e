#include "nightingale/ops/matrix.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::gpu {

namespace {

// Numbers are kept in multiples of 16 bytes, as some of MLX's kernels load
// them.
constexpr int kAligned = 8;

int aligned(size_t count) {
  return static_cast<int>((count + kAligned - 1) / kAligned * kAligned);
}

// One after the other, in words.
mx::array in_one(const ops::QuantizedTensor& tensor, mx::Stream s) {
  auto dtype = tensor.scales.dtype();
  auto flat = [&](const mx::array& x) { return mx::reshape(x, {-1}, s); };
  auto padded = [&](const mx::array& x) {
    int missing = aligned(x.size()) - static_cast<int>(x.size());
    auto zero = mx::array(0.0f, dtype);
    auto numbers = flat(mx::astype(x, dtype, s));
    return mx::pad(numbers, {0, missing}, zero, "constant", s);
  };
  auto numbers =
      mx::concatenate({padded(tensor.scales), padded(tensor.biases)}, 0, s);
  auto whole = mx::concatenate(
      {flat(tensor.quantized), mx::view(numbers, mx::uint32, s)}, 0, s);
  mx::eval(whole);
  return whole;
}

} // namespace

ops::Matrix quantize_matrix(const mx::array& w, int bits, mx::Stream s) {
  auto parts =
      mx::quantize(w, ops::Matrix::kGroup, bits, "affine", std::nullopt, s);
  return pack_matrix({parts[0], parts[1], parts[2]}, bits, s);
}

ops::Matrix
pack_matrix(const ops::QuantizedTensor& tensor, int bits, mx::Stream s) {
  const auto &quantized = tensor.quantized, &scales = tensor.scales;
  auto whole = in_one(tensor, s);
  int words = static_cast<int>(quantized.size());
  auto numbers = mx::view(
      mx::slice(whole, {words}, {whole.shape(0)}, s), scales.dtype(), s);
  auto part = [&](int begin) {
    auto end = begin + static_cast<int>(scales.size());
    return mx::reshape(
        mx::slice(numbers, {begin}, {end}, s), scales.shape(), s);
  };
  ops::Matrix matrix(
      mx::reshape(mx::slice(whole, {0}, {words}, s), quantized.shape(), s));
  matrix.scales = part(0);
  matrix.biases = part(aligned(scales.size()));
  matrix.bits = bits;
  matrix.group = ops::Matrix::kGroup;
  mx::eval(matrix.w, *matrix.scales, *matrix.biases);
  matrix.whole = std::move(whole);
  return matrix;
}

// Without an op of MLX's where `w` is evaluated.
mx::array transposed(const mx::array& w, mx::Stream s) {
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

} // namespace nightingale::gpu
