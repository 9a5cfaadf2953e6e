// The part of Weights that gives matrices for products, as codes too.

#include <algorithm>

#include "mlx/allocator.h"
#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/io/affine_quantization.h"
#include "nightingale/io/weights.h"

namespace nightingale {

namespace {

// Not from WeightMemory: what is only read through is to be freed.
mx::array temporary(const mx::Shape& shape, mx::Dtype dtype) {
  mx::array sized(shape, dtype, nullptr, {});
  return mx::array(mx::allocator::malloc(sized.nbytes()), shape, dtype);
}

// The codes of a tensor as words of `bits`, where the file has `stored`.
void read_words(
    const TensorFile& file,
    const std::string& name,
    int bits,
    uint32_t* words,
    mx::Dtype dtype,
    void* scales,
    void* biases) {
  int stored = file.bits(name);
  if (stored == bits) {
    file.read_quantized(name, words, dtype, scales, biases);
    return;
  }
  uint64_t count = file.info(name).size;
  std::vector<uint32_t> narrow(count * stored / 32);
  file.read_quantized(name, narrow.data(), dtype, scales, biases);
  widen_quantized(narrow.data(), count, words);
}

} // namespace

ops::Matrix Weights::take_matrix(
    const std::vector<std::string>& names,
    const mx::Shape& expected_each,
    int bits,
    mx::Stream s) {
  auto shape = check_rows(names, expected_each, dtype_);
  auto is_quantized = [&](const std::string& name) {
    return file_->bits(name) > 0;
  };
  auto quantized_count = std::ranges::count_if(names, is_quantized);
  if (quantized_count == 0 && bits == 0) {
    return take_rows(names, expected_each);
  }
  if (quantized_count != 0 && quantized_count != std::ssize(names)) {
    fail(
        *std::ranges::find_if_not(names, is_quantized),
        "it holds floats where '" + *std::ranges::find_if(names, is_quantized) +
            "' holds codes; one product reads both");
  }
  auto matrix = quantized_count > 0 ? read_quantized(names, shape, s)
                                    : quantized(names, shape, bits, s);
  nbytes_ += matrix.nbytes();
  return matrix;
}

ops::Matrix Weights::take_frame_matrix(
    const std::vector<std::string>& names,
    const mx::Shape& expected_each,
    mx::Dtype dtype,
    int bits,
    mx::Stream s) {
  return bits > 0 && expected_each[1] % kQuantizedGroup == 0
      ? take_matrix(names, expected_each, bits, s)
      : take_rows(names, expected_each, dtype);
}

ops::Kernel Weights::take_frame_conv(
    const std::string& layer,
    const mx::Shape& expected,
    mx::Dtype dtype,
    int bits,
    mx::Stream s) {
  int outputs = expected[0], channels = expected[1], taps = expected[2];
  if (bits == 0 || channels % kQuantizedGroup != 0) {
    return take_conv(layer, expected, dtype);
  }
  auto floats = temporary({outputs, taps, channels}, mx::float32);
  std::ranges::copy(
      ordered_kernel(layer, expected, false), floats.data<float>());
  auto kernel = ops::Kernel::quantized(floats, bits, s);
  nbytes_ += kernel.matrix.nbytes();
  return kernel;
}

ops::Matrix Weights::read_quantized(
    const std::vector<std::string>& names,
    const mx::Shape& shape,
    mx::Stream s) {
  int bits = 0;
  auto dtype = file_->info(names[0]).dtype;
  for (const std::string& name : names) {
    bits = std::max(bits, file_->bits(name));
    dtype = mx::promote_types(dtype, file_->info(name).dtype);
  }
  int words = static_cast<int>(int64_t(shape[1]) * bits / 32);
  int groups = shape[1] / kQuantizedGroup;
  auto quantized = temporary({shape[0], words}, mx::uint32);
  auto scales = temporary({shape[0], groups}, dtype);
  auto biases = temporary({shape[0], groups}, dtype);
  int64_t row = 0;
  for (const std::string& name : names) {
    size_t group_bytes = row * groups * dtype.size();
    read_words(
        *file_,
        name,
        bits,
        quantized.data<uint32_t>() + row * words,
        dtype,
        scales.data<char>() + group_bytes,
        biases.data<char>() + group_bytes);
    row += find(name).shape[0];
  }
  taken_.insert(names.begin(), names.end());
  if (!ops::on_cpu(s)) {
    scales = mx::astype(scales, dtype_, s);
    biases = mx::astype(biases, dtype_, s);
  }
  return ops::Matrix::from_quantized(quantized, scales, biases, bits, s);
}

ops::Matrix Weights::quantized(
    const std::vector<std::string>& names,
    const mx::Shape& shape,
    int bits,
    mx::Stream s) {
  auto floats = temporary(shape, mx::float32);
  read_rows(names, mx::float32, floats);
  if (ops::on_cpu(s)) {
    return ops::Matrix::quantized(floats, bits, s);
  }
  // On the CPU here too: the codes do not depend on where they will run.
  auto host = mx::default_stream(mx::Device::cpu);
  auto [quantized, scales, biases] =
      ops::Matrix::quantized(floats, bits, host).unpacked();
  return ops::Matrix::from_quantized(
      quantized,
      mx::astype(scales, dtype_, s),
      mx::astype(biases, dtype_, s),
      bits,
      s);
}

} // namespace nightingale
