#include "nightingale/ops/matrix.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"

namespace nightingale::ops {

namespace {

constexpr int kGroup = 64;

} // namespace

Matrix Matrix::quantized(const mx::array& w, int bits, mx::Stream s) {
  if (bits != 8 && bits != 4) {
    throw Error("weights take 8 or 4 bits, not " + std::to_string(bits));
  }
  if (w.shape(1) % kGroup != 0) {
    throw Error(
        "a matrix of " + std::to_string(w.shape(1)) +
        " columns cannot be quantised in groups of " + std::to_string(kGroup));
  }
  auto parts = mx::quantize(w, kGroup, bits, "affine", std::nullopt, s);
  mx::eval(parts);
  Matrix matrix(parts[0]);
  matrix.scales = parts[1];
  matrix.biases = parts[2];
  matrix.bits = bits;
  matrix.group = kGroup;
  return matrix;
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
