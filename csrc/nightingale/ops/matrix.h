#pragma once

#include <optional>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// The weights of a product x · wᵀ: floating point, or codes of 8 or 4 bits in
// MLX's affine format, w = scale * code + bias for each group of columns.
struct Matrix {
  mx::array w; // [N, K], or [N, K * bits / 32] uint32
  std::optional<mx::array> scales = std::nullopt; // [N, K / group]
  std::optional<mx::array> biases = std::nullopt;
  int bits = 0;
  int group = 0;

  Matrix(mx::array w) : w(std::move(w)) {}

  // wᵀ, [K, N]: where `w` is evaluated, a view that takes no op of MLX's.
  mx::array transposed(mx::Stream s) const;

  // `w` in codes of `bits`, made on `s`.
  static Matrix quantized(const mx::array& w, int bits, mx::Stream s);

  bool is_quantized() const {
    return scales.has_value();
  }
  int rows() const {
    return w.shape(0);
  }
  int columns() const {
    return is_quantized() ? w.shape(1) * 32 / bits : w.shape(1);
  }
  // Bytes that one product reads.
  size_t nbytes() const {
    return w.nbytes() +
        (is_quantized() ? scales->nbytes() + biases->nbytes() : 0);
  }
};

} // namespace nightingale::ops
