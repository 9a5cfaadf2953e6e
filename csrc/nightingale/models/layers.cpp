#include "nightingale/models/layers.h"

#include "nightingale/io/quantized_tensors.h"

namespace nightingale {

LayerReader LayerReader::as(mx::Dtype dtype, int bits) const {
  return as(dtype, bits, format_.row_bits);
}

LayerReader LayerReader::as(mx::Dtype dtype, int bits, int row_bits) const {
  LayerReader reader = *this;
  reader.format_.matrices = dtype;
  reader.format_.bits = bits;
  reader.format_.row_bits = row_bits;
  return reader;
}

std::vector<std::string> LayerReader::full_names(
    const std::vector<std::string>& layers,
    const char* tensor) const {
  std::vector<std::string> names;
  for (const std::string& layer : layers) {
    names.push_back(prefix_ + layer + tensor);
  }
  return names;
}

mx::array LayerReader::tensor(
    const std::string& name,
    const mx::Shape& expected,
    std::optional<mx::Dtype> dtype) const {
  return weights_->take(
      prefix_ + name, expected, dtype.value_or(format_.vectors));
}

ops::Matrix LayerReader::matrix(
    const std::vector<std::string>& layers,
    const mx::Shape& expected_each) const {
  auto names = full_names(layers, ".weight");
  const auto& f = format_;
  if (f.bits == 0 || expected_each[1] % kQuantizedGroup != 0) {
    return weights_->take_rows(names, expected_each, f.matrices);
  }
  auto matrix = weights_->take_matrix(names, expected_each, f.bits, f.stream);
  matrix.row_bits = f.row_bits;
  return matrix;
}

Linear LayerReader::linear(
    const std::vector<std::string>& layers,
    const mx::Shape& expected_each) const {
  auto biases = full_names(layers, ".bias");
  return {
      matrix(layers, expected_each),
      weights_->take_rows(biases, {expected_each[0]}, format_.vectors)};
}

ops::LayerNorm
LayerReader::norm(const std::string& layer, int channels, float eps) const {
  return {
      tensor(layer + ".weight", {channels}),
      tensor(layer + ".bias", {channels}),
      eps};
}

ops::Kernel LayerReader::kernel(
    const std::string& layer,
    const mx::Shape& expected) const {
  const auto& f = format_;
  std::string name = prefix_ + layer;
  if (f.bits == 0 || expected[1] % kQuantizedGroup != 0) {
    return weights_->take_conv(name, expected, f.matrices);
  }
  auto kernel = weights_->take_quantized_conv(name, expected, f.bits, f.stream);
  kernel.matrix.row_bits = f.row_bits;
  return kernel;
}

mx::array LayerReader::transposed_kernel(
    const std::string& layer,
    const mx::Shape& expected) const {
  return weights_->take_conv(prefix_ + layer, expected, format_.matrices, true);
}

Convolution LayerReader::convolution(
    const std::string& layer,
    const mx::Shape& expected,
    const ops::Conv1d& shape) const {
  return {
      kernel(layer, expected), tensor(layer + ".bias", {expected[0]}), shape};
}

Linear LayerReader::pointwise(const std::string& layer, int outputs, int inputs)
    const {
  auto conv = convolution(layer, {outputs, inputs, 1});
  return {conv.w.one_tap(), conv.b};
}

} // namespace nightingale
