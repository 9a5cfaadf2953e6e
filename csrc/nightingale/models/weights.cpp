#include "nightingale/models/weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "mlx/allocator.h"
#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/quantized_tensors.h"

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

std::string describe_expected(const mx::Shape& shape) {
  std::string text = "[";
  for (auto dim : shape) {
    text += text.size() > 1 ? ", " : "";
    text += dim == -1 ? "any" : std::to_string(dim);
  }
  return text + "]";
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
  return mx::array(mx::allocator::malloc(sized.nbytes()), shape, dtype);
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

} // namespace

Weights::Weights(std::shared_ptr<const TensorFile> file, mx::Dtype dtype)
    : file_(std::move(file)), dtype_(dtype) {}

bool Weights::has(const std::string& name) const {
  return file_->contains(name);
}

mx::Shape Weights::shape(const std::string& name) const {
  return find(name).shape;
}

mx::array Weights::take(
    const std::string& name,
    const mx::Shape& expected,
    mx::Dtype dtype) {
  const TensorInfo& info = check(name, expected, dtype);
  auto tensor = memory_.allocate(info.shape, dtype);
  file_->read(name, dtype, tensor.data<void>());
  taken_.insert(name);
  nbytes_ += tensor.nbytes();
  return tensor;
}

mx::array Weights::take(const std::string& name, const mx::Shape& expected) {
  return take(name, expected, dtype_);
}

mx::array Weights::take_rows(
    const std::vector<std::string>& names,
    const mx::Shape& expected_each,
    mx::Dtype dtype) {
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

mx::array Weights::take_rows(
    const std::vector<std::string>& names,
    const mx::Shape& expected_each) {
  return take_rows(names, expected_each, dtype_);
}

mx::array Weights::take_conv(
    const std::string& layer,
    const mx::Shape& expected,
    mx::Dtype dtype) {
  return take_kernel(layer, expected, false, dtype);
}

mx::array Weights::take_conv(
    const std::string& layer,
    const mx::Shape& expected) {
  return take_conv(layer, expected, dtype_);
}

mx::array Weights::take_conv_transpose(
    const std::string& layer,
    const mx::Shape& expected,
    mx::Dtype dtype) {
  return take_kernel(layer, expected, true, dtype);
}

std::vector<float> Weights::ordered_kernel(
    const std::string& layer,
    const mx::Shape& expected,
    bool transposed) {
  std::vector<float> kernel = read_kernel(layer, expected);
  int outputs = expected[transposed ? 1 : 0];
  int channels = expected[transposed ? 0 : 1];
  int taps = expected[2];
  std::vector<float> ordered(kernel.size());
  for (int o = 0; o < outputs; ++o) {
    for (int c = 0; c < channels; ++c) {
      int64_t from =
          transposed ? int64_t(c) * outputs + o : int64_t(o) * channels + c;
      for (int k = 0; k < taps; ++k) {
        ordered[(int64_t(o) * taps + k) * channels + c] =
            kernel[from * taps + k];
      }
    }
  }
  return ordered;
}

mx::array Weights::take_kernel(
    const std::string& layer,
    const mx::Shape& expected,
    bool transposed,
    mx::Dtype dtype) {
  auto ordered = ordered_kernel(layer, expected, transposed);
  int outputs = expected[transposed ? 1 : 0];
  int channels = expected[transposed ? 0 : 1];
  auto tensor = memory_.allocate({outputs, expected[2], channels}, dtype);
  convert_elements(
      ordered.data(), mx::float32, tensor.data<void>(), dtype, ordered.size());
  nbytes_ += tensor.nbytes();
  return tensor;
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

std::optional<std::pair<std::string, std::string>> Weights::norm_names(
    const std::string& layer) const {
  std::string parametrised = layer + ".parametrizations.weight.original";
  if (has(parametrised + "0")) {
    return std::pair(parametrised + "0", parametrised + "1");
  }
  if (has(layer + ".weight_g")) {
    return std::pair(layer + ".weight_g", layer + ".weight_v");
  }
  return std::nullopt;
}

std::vector<float> Weights::read_kernel(
    const std::string& layer,
    const mx::Shape& expected) {
  auto names = norm_names(layer);
  if (!names) {
    return read(layer + ".weight", expected);
  }
  auto gains = read(names->first, {expected[0], 1, 1});
  auto kernel = read(names->second, expected);
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
  // On the CPU here too: the weights do not depend on where they will run.
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
        "expected " + describe_expected(expected) + ", found " +
            to_string(info.shape));
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
