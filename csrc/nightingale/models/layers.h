#pragma once

#include <string>
#include <vector>

#include "nightingale/models/weights.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/linear.h"

namespace nightingale {

// A product with a bias.
struct Linear {
  ops::Matrix w; // [O, C]
  mx::array b; // [O]

  // The bias is added to what `epilogue` has.
  mx::array operator()(const mx::array& x, ops::Epilogue epilogue, mx::Stream s)
      const {
    epilogue.bias = b;
    return ops::linear(x, w, epilogue, s);
  }
};

// A convolution with a bias.
struct Convolution {
  ops::Kernel w; // [O, K, C]
  mx::array b; // [O]
  ops::Conv1d shape = {};

  mx::array operator()(const mx::array& x, ops::Epilogue epilogue, mx::Stream s)
      const {
    epilogue.bias = b;
    return ops::conv1d(x, w, {shape, epilogue}, s);
  }
};

// How a model keeps its weights.
struct LayerFormat {
  mx::Stream stream; // of the products
  mx::Dtype matrices = mx::float32;
  mx::Dtype vectors = mx::float32; // biases and norms
  // What matrices and kernels are quantized to where their rows, or the
  // channels of each tap, are whole groups; 0: none.
  int bits = 0;
  int row_bits = 16; // ops::Matrix::row_bits of what is quantized
};

// Reads the layers whose names begin with a prefix. Shapes are the expected
// ones, in the order of the file.
class LayerReader {
 public:
  LayerReader(Weights& weights, LayerFormat format, std::string prefix = "")
      : weights_(&weights), format_(format), prefix_(std::move(prefix)) {}

  const LayerFormat& format() const {
    return format_;
  }
  // Dimension `axis` of a tensor that must have `ndim` of them.
  int size(const std::string& name, int ndim, int axis) const {
    return size_of(weights_->file(), prefix_ + name, ndim, axis);
  }
  // As count_layers.
  int count(const std::string& list) const {
    return count_layers(weights_->file(), prefix_ + list);
  }

  // The layers named "`name`.*" and "`list`.`index`.*".
  LayerReader child(const std::string& name) const {
    return {*weights_, format_, prefix_ + name + "."};
  }
  LayerReader child(const std::string& list, int index) const {
    return child(list + "." + std::to_string(index));
  }
  // The same layers with matrices as `dtype`, quantized to `bits`.
  LayerReader as(mx::Dtype dtype, int bits) const;
  LayerReader as(mx::Dtype dtype, int bits, int row_bits) const;

  // One tensor, as `dtype` or as vectors are.
  mx::array tensor(
      const std::string& name,
      const mx::Shape& expected,
      std::optional<mx::Dtype> dtype = std::nullopt) const;

  // One layer's weights, or those of several, one below the other.
  ops::Matrix matrix(
      const std::vector<std::string>& layers,
      const mx::Shape& expected_each) const;
  Linear linear(
      const std::vector<std::string>& layers,
      const mx::Shape& expected_each) const;

  ops::LayerNorm norm(const std::string& layer, int channels, float eps) const;

  // expected: [O, C, K]
  ops::Kernel kernel(const std::string& layer, const mx::Shape& expected) const;
  Convolution convolution(
      const std::string& layer,
      const mx::Shape& expected,
      const ops::Conv1d& shape = {}) const;
  // Of a transposed convolution, [C, O, K] in the file → [O, K, C]
  mx::array transposed_kernel(
      const std::string& layer,
      const mx::Shape& expected) const;
  // A convolution of one tap.
  Linear pointwise(const std::string& layer, int outputs, int inputs) const;

 private:
  std::vector<std::string> full_names(
      const std::vector<std::string>& layers,
      const char* tensor) const;

  Weights* weights_;
  LayerFormat format_;
  std::string prefix_;
};

} // namespace nightingale
