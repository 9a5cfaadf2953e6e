#include "nightingale/io/quantized_tensors.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "nightingale/io/dtype.h"
#include "nightingale/io/tensor_file.h"

namespace nightingale {

namespace {

constexpr std::string_view kWeight = ".weight";

// What the names of a tensor's parts begin with: "layer.scales" belongs to
// "layer.weight" and "lstm.weight_hh.scales" to "lstm.weight_hh".
std::string part_prefix(std::string name) {
  if (name.ends_with(kWeight)) {
    name.resize(name.size() - kWeight.size());
  }
  return name + ".";
}

bool holds(const mx::Shape& shape, uint64_t size) {
  uint64_t product = 1;
  for (auto dim : shape) {
    if (__builtin_mul_overflow(product, uint64_t(dim), &product)) {
      return false;
    }
  }
  return product == size;
}

// The floats of `count` elements, a whole number of groups.
void dequantize(
    const uint32_t* quantized,
    const float* scales,
    const float* biases,
    int bits,
    int64_t count,
    float* out) {
  int per_word = 32 / bits;
  uint32_t mask = (1u << bits) - 1;
  for (int64_t i = 0; i < count; i += per_word) {
    int64_t group = i / kQuantizedGroup;
    uint32_t word = quantized[i / per_word];
    for (int j = 0; j < per_word; ++j) {
      uint32_t q = (word >> (j * bits)) & mask;
      out[i + j] = scales[group] * static_cast<float>(q) + biases[group];
    }
  }
}

} // namespace

int quantized_bits(int64_t words, int64_t groups) {
  for (int bits : {8, 4}) {
    if (groups > 0 && words * 32 == groups * kQuantizedGroup * bits) {
      return bits;
    }
  }
  return 0;
}

void widen_quantized(const uint32_t* quantized, int64_t count, uint32_t* out) {
  for (int64_t i = 0; i < count / 8; ++i) {
    for (int half = 0; half < 2; ++half) {
      uint32_t nibbles = quantized[i] >> (16 * half);
      out[2 * i + half] = (nibbles & 0xf) | (nibbles & 0xf0) << 4 |
          (nibbles & 0xf00) << 8 | (nibbles & 0xf000) << 12;
    }
  }
}

int TensorFile::bits(const std::string& name) const {
  auto found = quantized_.find(name);
  if (found == quantized_.end()) {
    return 0;
  }
  const QuantizedTensor& quantized = found->second;
  bool has_rows = quantized.words.shape[0] == info(name).shape[0];
  return has_rows ? quantized.bits : 0;
}

int TensorFile::fewest_bits() const {
  int fewest = 0;
  for (const auto& [name, quantized] : quantized_) {
    fewest = fewest == 0 ? quantized.bits : std::min(fewest, quantized.bits);
  }
  return fewest;
}

void TensorFile::read_quantized(
    const std::string& name,
    uint32_t* quantized,
    mx::Dtype dtype,
    void* scales,
    void* biases) const {
  auto found = quantized_.find(name);
  if (found == quantized_.end()) {
    file_->fail("tensor '" + name + "' is not quantized");
  }
  const QuantizedTensor& parts = found->second;
  read_elements(name, parts.words, mx::uint32, quantized);
  read_elements(parts.scales_name, parts.scales, dtype, scales);
  read_elements(parts.biases_name, parts.biases, dtype, biases);
}

void TensorFile::read_dequantized(
    const std::string& name,
    const QuantizedTensor& quantized,
    mx::Dtype dtype,
    void* dst) const {
  std::vector<uint32_t> words(quantized.words.size);
  std::vector<float> scales(quantized.scales.size),
      biases(quantized.biases.size);
  read_quantized(name, words.data(), mx::float32, scales.data(), biases.data());

  int64_t rows = quantized.words.shape[0], groups = quantized.scales.shape[1];
  int64_t columns = groups * kQuantizedGroup,
          row_words = quantized.words.shape[1];
  std::vector<float> row(columns);
  auto* out = static_cast<char*>(dst);
  for (int64_t i = 0; i < rows; ++i, out += columns * dtype.size()) {
    dequantize(
        words.data() + i * row_words,
        scales.data() + i * groups,
        biases.data() + i * groups,
        quantized.bits,
        columns,
        row.data());
    convert_elements(row.data(), mx::float32, out, dtype, columns);
  }
}

void TensorFile::join_quantized(
    const std::map<std::string, mx::Shape>& shapes) {
  for (const std::string& name : names()) {
    std::string parts = part_prefix(name);
    bool is_quantized = contains(name) && info(name).dtype == mx::uint32 &&
        (name.ends_with(kWeight) || contains(parts + "scales") ||
         contains(parts + "biases"));
    if (is_quantized) {
      quantized_.emplace(name, take_quantized(name));
    }
  }
  for (const auto& [name, shape] : shapes) {
    auto found = quantized_.find(name);
    if (found == quantized_.end()) {
      file_->fail(
          "header: there is a shape for '" + name +
          "', which is not quantized");
    }
    TensorInfo& tensor = tensors_.at(name);
    // Rows that are no whole groups follow each other in rows of one group.
    bool fits = !shape.empty() &&
        (shape[0] == tensor.shape[0] || tensor.shape[1] == kQuantizedGroup);
    if (!fits || !holds(shape, tensor.size)) {
      file_->fail(
          "header: tensor '" + name + "' is quantized as " +
          to_string(tensor.shape) + ", which cannot be " + to_string(shape));
    }
    tensor.shape = shape;
  }
}

TensorFile::QuantizedTensor TensorFile::take_quantized(
    const std::string& name) {
  std::string prefix = part_prefix(name);
  std::string scales = prefix + "scales", biases = prefix + "biases";
  auto fail = [&](const std::string& message) {
    file_->fail("tensor '" + name + "' is quantized, but " + message);
  };
  for (const std::string& part : {scales, biases}) {
    if (!contains(part)) {
      fail("there is no '" + part + "'");
    }
    if (!is_float(info(part).dtype)) {
      fail(
          "'" + part + "' is " + dtype_name(info(part).dtype) +
          ", expected a float type");
    }
  }
  QuantizedTensor quantized{
      0, info(name), info(scales), info(biases), scales, biases};
  const auto& words = quantized.words.shape;
  const auto& groups = quantized.scales.shape;
  if (words.size() != 2 || groups.size() != 2 || words[0] != groups[0]) {
    fail(
        "they are " + to_string(words) + " beside scales of " +
        to_string(groups) + ", expected matrices with the same rows");
  }
  if (quantized.biases.shape != groups ||
      quantized.biases.dtype != quantized.scales.dtype) {
    fail(
        "its biases are " + dtype_name(quantized.biases.dtype) + " " +
        to_string(quantized.biases.shape) + " beside scales of " +
        dtype_name(quantized.scales.dtype) + " " + to_string(groups));
  }
  quantized.bits = quantized_bits(words[1], groups[1]);
  int64_t columns = int64_t(groups[1]) * kQuantizedGroup;
  if (quantized.bits == 0 ||
      columns > std::numeric_limits<mx::ShapeElem>::max()) {
    fail(
        std::to_string(words[1]) + " words and " + std::to_string(groups[1]) +
        " scales a row are not 8 or 4 bits in groups of " +
        std::to_string(kQuantizedGroup));
  }
  tensors_.erase(scales);
  tensors_.erase(biases);
  TensorInfo& whole = tensors_.at(name);
  whole.dtype = quantized.scales.dtype;
  whole.shape = {words[0], static_cast<mx::ShapeElem>(columns)};
  whole.size = uint64_t(words[0]) * columns;
  return quantized;
}

} // namespace nightingale
