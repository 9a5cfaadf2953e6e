#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mlx/array.h"
#include "mlx/dtype.h"
#include "nightingale/io/input_file.h"

namespace nightingale {

namespace mx = mlx::core;

struct TensorInfo {
  mx::Dtype dtype;
  mx::Shape shape;
  uint64_t size; // elements

  uint64_t nbytes() const {
    return size * dtype.size();
  }
};

// Formats a shape for messages: "[1024, 4096]", "any" for -1.
std::string to_string(const mx::Shape& shape);

// The named tensors of one checkpoint file. Everything that says where and
// what they are is checked when the file is opened; elements are read when
// asked for. Reading from several threads is safe.
class TensorFile {
 public:
  // Opens a safetensors file.
  static std::shared_ptr<const TensorFile> open(const std::string& path);

  virtual ~TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  const std::string& path() const {
    return file_->path();
  }
  std::vector<std::string> names() const; // sorted
  bool contains(const std::string& name) const {
    return tensors_.contains(name);
  }
  const TensorInfo& info(const std::string& name) const;

  // Reads a tensor's elements, row-major and converted to `dtype`, into `dst`,
  // which has room for all of them.
  void read(const std::string& name, mx::Dtype dtype, void* dst) const;

  // Bits of the elements of a quantized tensor (see quantized_tensors.h); 0
  // where it is not quantized, or in groups that go from one row into the next.
  // info() and read() are of its floats; the type is that of the scales.
  int bits(const std::string& name) const;
  // The fewest bits of any quantized tensor; 0 where there is none.
  int fewest_bits() const;

  // A quantized tensor of n elements: n * bits / 32 words, and n / 64
  // scales and biases as `dtype`.
  void read_quantized(
      const std::string& name,
      uint32_t* quantized,
      mx::Dtype dtype,
      void* scales,
      void* biases) const;

  // A string from the file's own description of itself, which a safetensors
  // file can hold.
  std::optional<std::string> metadata(const std::string& key) const;

  // A plain number stored beside the tensors, which a torch file can hold.
  std::optional<double> scalar(const std::string& name) const;

 protected:
  // Bytes of the file that hold one tensor, or that several share.
  struct Range {
    std::string what; // as errors name it
    uint64_t offset, size;
    std::optional<uint32_t> crc = std::nullopt; // of `line`, then of the bytes
    std::string line = "";
  };

  // Where the elements of a tensor are in the bytes of its range.
  struct View {
    const Range* range;
    uint64_t begin; // offset of the first element
    uint64_t end; // past the last element in memory
    // Both are empty where the elements follow each other; strides in bytes.
    std::vector<uint64_t> dims = {}, strides = {};
  };

  explicit TensorFile(std::unique_ptr<const InputFile> file)
      : file_(std::move(file)) {}

  const InputFile& file() const {
    return *file_;
  }

  // Checks name and dims and records the tensor; returns what was recorded.
  const TensorInfo& add_tensor(
      const std::string& name,
      mx::Dtype dtype,
      const std::vector<int64_t>& dims);
  void add_scalar(const std::string& name, double value);
  // From words, scales and biases makes one tensor each: a matrix, or of the
  // shape that `shapes` has for it.
  void join_quantized(const std::map<std::string, mx::Shape>& shapes);

  std::map<std::string, Range> ranges_;
  std::map<std::string, View> views_; // of the tensors
  std::map<std::string, std::string> metadata_;

 private:
  class ElementReader;

  // A tensor in its parts.
  struct QuantizedTensor {
    int bits;
    TensorInfo words, scales, biases;
    std::string scales_name, biases_name;
  };

  void check_is_new(const std::string& name) const;
  void read_elements(
      const std::string& name,
      const TensorInfo& tensor,
      mx::Dtype dtype,
      void* dst) const;
  void read_dequantized(
      const std::string& name,
      const QuantizedTensor& quantized,
      mx::Dtype dtype,
      void* dst) const;
  // Takes a tensor's parts out of the list of tensors, checked.
  QuantizedTensor take_quantized(const std::string& name);

  std::unique_ptr<const InputFile> file_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, QuantizedTensor> quantized_;
  std::map<std::string, double> scalars_;

  // The ranges that were read and have their CRC.
  mutable std::mutex mutex_;
  mutable std::set<const Range*> verified_;
};

// Dimension `axis` of a tensor that must have `ndim` of them.
int size_of(
    const TensorFile& file,
    const std::string& name,
    int ndim,
    int axis);

// One more than the highest number that follows `prefix` in any tensor's name,
// so that a layer with tensors missing is an error and not the end of the
// stack; 0 where there is none.
int count_layers(const TensorFile& file, const std::string& prefix);

// The type to keep a model's matrices in where the caller names none: that of
// the tensor `name` if it is float16 or bfloat16, otherwise float32.
mx::Dtype stored_dtype(const TensorFile& file, const std::string& name);

} // namespace nightingale
