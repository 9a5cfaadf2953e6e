#include "nightingale/models/weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/quantized_tensors.h"
#include "nightingale/memory.h"

namespace nightingale {

namespace {

bool matches(const mx::Shape& found, const mx::Shape& expected) {
  return std::equal(
      found.begin(),
      found.end(),
      expected.begin(),
      expected.end(),
      [](auto size, auto wanted) { return wanted == -1 || size == wanted; });
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// The name that differs least, if by no more than a quarter of `name`.
std::optional<std::string> nearest(
    const std::vector<std::string>& names,
    const std::string& name) {
  std::optional<std::string> best;
  size_t least = name.size() / 4 + 1;
  for (const std::string& other : names) {
    size_t longer = std::max(name.size(), other.size());
    size_t shorter = std::min(name.size(), other.size());
    if (longer - shorter >= least) {
      continue;
    }
    size_t distance = edit_distance(name, other);
    if (distance < least) {
      least = distance;
      best = other;
    }
  }
  return best;
}

// Not from WeightMemory: what is only read through is to be freed.
mx::array temporary(const mx::Shape& shape, mx::Dtype dtype) {
  mx::array sized(shape, dtype, nullptr, {});
  return mx::array(allocate(sized.nbytes()), shape, dtype);
}

// A quantized tensor as words of `bits`, which may be more than the file has.
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

// A kernel of the file as [O, K, C]. shape: [O, C, K], or [C, O, K] where it is
// `transposed`
std::vector<float> ordered(
    const std::vector<float>& kernel,
    const mx::Shape& shape,
    bool transposed) {
  int64_t inner = shape[1], taps = shape[2];
  int outputs = shape[transposed], channels = shape[!transposed];
  int64_t output_step = transposed ? taps : inner * taps;
  int64_t channel_step = transposed ? inner * taps : taps;
  std::vector<float> ordered;
  ordered.reserve(kernel.size());
  for (int o = 0; o < outputs; ++o) {
    for (int k = 0; k < taps; ++k) {
      for (int c = 0; c < channels; ++c) {
        ordered.push_back(kernel[o * output_step + c * channel_step + k]);
      }
    }
  }
  return ordered;
}

// x: [rows, columns] → y: [columns, rows], by blocks that stay in the cache.
void transpose(const float* x, int64_t rows, int64_t columns, float* y) {
  constexpr int64_t kBlock = 32;
  for (int64_t first = 0; first < rows; first += kBlock) {
    int64_t last = std::min(rows, first + kBlock);
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t row = first; row < last; ++row) {
        y[column * rows + row] = x[row * columns + column];
      }
    }
  }
}

} // namespace

mx::array Weights::take(
    const std::string& name,
    const mx::Shape& expected,
    std::optional<mx::Dtype> dtype) {
  return take_rows({name}, expected, dtype);
}

mx::array Weights::take_rows(
    const std::vector<std::string>& names,
    const mx::Shape& expected_each,
    std::optional<mx::Dtype> type) {
  mx::Dtype dtype = type.value_or(dtype_);
  auto stacked =
      memory_.allocate(check_rows(names, expected_each, dtype), dtype);
  read_rows(names, dtype, stacked);
  nbytes_ += stacked.nbytes();
  return stacked;
}

mx::Shape Weights::check_rows(
    const std::vector<std::string>& names,
    const mx::Shape& expected_each,
    mx::Dtype dtype) const {
  if (names.empty() || expected_each.empty()) {
    throw Error("take_rows: expected one or more tensors that have rows");
  }
  mx::Shape expected = expected_each;
  mx::Shape shape = check(names[0], expected, dtype).shape;
  std::copy(shape.begin() + 1, shape.end(), expected.begin() + 1);
  shape[0] = 0;
  for (const std::string& name : names) {
    const TensorInfo& info = check(name, expected, dtype);
    if (__builtin_add_overflow(shape[0], info.shape[0], &shape[0])) {
      fail(name, "too many rows to stack");
    }
  }
  return shape;
}

void Weights::read_rows(
    const std::vector<std::string>& names,
    mx::Dtype dtype,
    mx::array& rows) {
  auto* out = rows.data<char>();
  for (const std::string& name : names) {
    file_->read(name, dtype, out);
    out += find(name).size * dtype.size();
  }
  taken_.insert(names.begin(), names.end());
}

mx::array Weights::take_conv(
    const std::string& layer,
    const mx::Shape& expected,
    std::optional<mx::Dtype> type,
    bool transposed) {
  mx::Dtype dtype = type.value_or(dtype_);
  auto kernel = ordered(read_kernel(layer, expected), expected, transposed);
  auto tensor = memory_.allocate(
      {expected[transposed], expected[2], expected[!transposed]}, dtype);
  convert_elements(
      kernel.data(), mx::float32, tensor.data<void>(), dtype, kernel.size());
  nbytes_ += tensor.nbytes();
  return tensor;
}

ops::Kernel Weights::take_quantized_conv(
    const std::string& layer,
    const mx::Shape& expected,
    int bits,
    mx::Stream s) {
  auto floats = temporary({expected[0], expected[2], expected[1]}, mx::float32);
  std::ranges::copy(
      ordered(read_kernel(layer, expected), expected, false),
      floats.data<float>());
  auto kernel = ops::Kernel::quantized(floats, bits, s);
  nbytes_ += kernel.matrix.nbytes();
  return kernel;
}

std::vector<float> Weights::read(
    const std::string& name,
    const mx::Shape& expected) {
  const TensorInfo& info = check(name, expected, mx::float32);
  std::vector<float> values(info.size);
  file_->read(name, mx::float32, values.data());
  taken_.insert(name);
  return values;
}

std::vector<float> Weights::read_kernel(
    const std::string& layer,
    const mx::Shape& expected) {
  std::string gain_name = layer + ".parametrizations.weight.original0";
  std::string direction_name = layer + ".parametrizations.weight.original1";
  if (!has(gain_name)) {
    gain_name = layer + ".weight_g";
    direction_name = layer + ".weight_v";
  }
  if (!has(gain_name)) {
    return read(layer + ".weight", expected);
  }
  auto gains = read(gain_name, {expected[0], 1, 1});
  auto kernel = read(direction_name, expected);
  size_t count = kernel.size() / gains.size();
  for (size_t i = 0; i < gains.size(); ++i) {
    float* row = kernel.data() + i * count;
    double squares = 0;
    for (size_t j = 0; j < count; ++j) {
      squares += double(row[j]) * row[j];
    }
    float scale = gains[i] / static_cast<float>(std::sqrt(squares));
    for (size_t j = 0; j < count; ++j) {
      row[j] *= scale;
    }
  }
  return kernel;
}

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
            "' is quantized; one product reads both");
  }
  auto floats_of = [&] {
    auto floats = temporary(shape, mx::float32);
    read_rows(names, mx::float32, floats);
    return floats;
  };
  auto matrix = quantized_count > 0 ? read_quantized(names, shape, s)
                                    : quantized(floats_of(), bits, s);
  nbytes_ += matrix.nbytes();
  return matrix;
}

ops::Matrix Weights::take_transposed(
    const std::string& name,
    const mx::Shape& expected,
    int bits,
    mx::Stream s) {
  if (file_->bits(name) > 0) {
    return take_matrix({name}, expected, bits, s);
  }
  int rows = expected[0], columns = expected[1];
  auto stored = read(name, {columns, rows});
  auto floats = temporary(expected, mx::float32);
  transpose(stored.data(), columns, rows, floats.data<float>());
  if (bits != 0) {
    auto matrix = quantized(floats, bits, s);
    nbytes_ += matrix.nbytes();
    return matrix;
  }
  auto matrix = memory_.allocate(expected, dtype_);
  convert_elements(
      floats.data<float>(),
      mx::float32,
      matrix.data<void>(),
      dtype_,
      floats.size());
  nbytes_ += matrix.nbytes();
  return matrix;
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
  return on_stream({quantized, scales, biases}, bits, s);
}

ops::Matrix Weights::quantized(const mx::array& floats, int bits, mx::Stream s)
    const {
  if (ops::on_cpu(s)) {
    return ops::Matrix::quantized(floats, bits, s);
  }
  // On the CPU here too: the weights do not depend on where they will run.
  auto host = mx::default_stream(mx::Device::cpu);
  return on_stream(
      ops::Matrix::quantized(floats, bits, host).unpacked(), bits, s);
}

ops::Matrix Weights::on_stream(
    const ops::QuantizedTensor& tensor,
    int bits,
    mx::Stream s) const {
  auto typed = [&](const mx::array& x) {
    return ops::on_cpu(s) ? x : mx::astype(x, dtype_, s);
  };
  return ops::Matrix::from_quantized(
      tensor.quantized, typed(tensor.scales), typed(tensor.biases), bits, s);
}

std::vector<std::string> Weights::unused(
    const std::vector<std::string>& ignored) const {
  auto is_ignored = [&](const std::string& name) {
    return std::ranges::any_of(ignored, [&](std::string_view pattern) {
      return pattern.ends_with('*')
          ? name.starts_with(pattern.substr(0, pattern.size() - 1))
          : name == pattern;
    });
  };
  std::vector<std::string> names;
  for (std::string& name : file_->names()) {
    if (!taken_.contains(name) && !is_ignored(name)) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

const TensorInfo& Weights::find(const std::string& name) const {
  if (!has(name)) {
    auto near = nearest(file_->names(), name);
    fail(
        name,
        "there is no such tensor" +
            (near ? "; the nearest name is '" + *near + "'" : ""));
  }
  return file_->info(name);
}

const TensorInfo& Weights::check(
    const std::string& name,
    const mx::Shape& expected,
    mx::Dtype dtype) const {
  const TensorInfo& info = find(name);
  if (!matches(info.shape, expected)) {
    fail(
        name,
        "expected " + to_string(expected) + ", found " + to_string(info.shape));
  }
  if (!is_convertible(info.dtype, dtype)) {
    fail(
        name,
        std::string("expected ") +
            (is_float(dtype) ? "a float type" : "an integer type") +
            " to read as " + dtype_name(dtype) + ", found " +
            dtype_name(info.dtype));
  }
  return info;
}

void Weights::fail(const std::string& name, const std::string& message) const {
  throw Error(file_->path() + ": " + name + ": " + message);
}

} // namespace nightingale
