#pragma once

#include <optional>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// A matrix in MLX's affine format: w = scale * q + bias for each group of
// columns.
struct QuantizedTensor {
  mx::array quantized; // [N, K * bits / 32] uint32
  mx::array scales; // [N, K / group]
  mx::array biases;
};

// The weights of a product x · wᵀ: floating point, or quantized to 8 or 4 bits.
// A GPU reads quantized weights as MLX stores them; the CPU packs them in tiles
// (backends/cpu/packed_matrix.h), with scales and biases in float16.
struct Matrix {
  static constexpr int kGroup = 64;

  mx::array w; // [N, K], QuantizedTensor::quantized, or packed tiles
  std::optional<mx::array> scales = std::nullopt; // of QuantizedTensor
  std::optional<mx::array> biases = std::nullopt;
  // The memory that `w`, `scales` and `biases` are views of, one after the
  // other, so that a kernel takes one input instead of three; scales and biases
  // are padded to multiples of eight. [words] uint32
  std::optional<mx::array> whole = std::nullopt;
  int bits = 0;
  int group = 0;
  // On the CPU, what rows are rounded to in products with quantized weights: 16
  // bits hardly change a result, 8 are multiplied about twice as fast.
  int row_bits = 16;

  Matrix(mx::array w) : w(std::move(w)) {}

  // Quantizes `w` for products on `s`. The result is evaluated, so that `w` may
  // be freed.
  static Matrix quantized(const mx::array& w, int bits, mx::Stream s);

  // From a tensor that is already quantized; scales and biases of any floating
  // type.
  static Matrix from_quantized(
      const mx::array& quantized,
      const mx::array& scales,
      const mx::array& biases,
      int bits,
      mx::Stream s);

  // `rows` rows packed for the CPU.
  static Matrix packed(mx::array tiles, int rows, int bits);

  // The quantized weights in MLX's format, evaluated.
  QuantizedTensor unpacked() const;

  // scale * q + bias, [N, K]
  mx::array dequantized(mx::Dtype dtype, mx::Stream s) const;

  // Columns [begin, begin + count) of each of `taps` equal parts of a row, in
  // memory of their own; of quantized weights whole groups.
  Matrix columns_of(int begin, int count, int taps = 1) const;

  bool is_quantized() const {
    return bits != 0;
  }
  // Whether it is quantized and packed for the CPU.
  bool is_packed() const {
    return is_quantized() && !scales;
  }
  int rows() const {
    return is_packed() ? packed_rows_ : w.shape(0);
  }
  int columns() const {
    return is_packed()   ? w.shape(1) * kGroup
        : is_quantized() ? w.shape(1) * 32 / bits
                         : w.shape(1);
  }
  // Bytes that one product reads.
  size_t nbytes() const {
    return w.nbytes() + (scales ? scales->nbytes() + biases->nbytes() : 0);
  }

 private:
  int packed_rows_ = 0; // `w` may have more, to fill its last tile
};

// x · wᵀ, and a bias where there is one.
struct Projection {
  Matrix w;
  std::optional<mx::array> b; // [N]

  Projection(Matrix w, std::optional<mx::array> b = std::nullopt)
      : w(std::move(w)), b(std::move(b)) {}
};

// The shape of x after a product that gives so many columns.
inline mx::Shape with_columns(const mx::array& x, int columns) {
  mx::Shape shape = x.shape();
  shape.back() = columns;
  return shape;
}

} // namespace nightingale::ops
