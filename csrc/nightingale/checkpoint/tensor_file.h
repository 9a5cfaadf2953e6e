#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mlx/array.h"
#include "mlx/dtype.h"
#include "nightingale/checkpoint/input_file.h"

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

// Formats a shape for messages: "[1024, 4096]".
std::string to_string(const mx::Shape& shape);

// The named tensors of one checkpoint file. Everything that says where and
// what they are is checked when the file is opened; elements are read when
// asked for. Reading from several threads is safe.
class TensorFile {
 public:
  // Opens a safetensors file or a torch zip archive, told apart by content.
  static std::shared_ptr<const TensorFile> open(const std::string& path);

  virtual ~TensorFile();
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  const std::string& path() const;
  std::vector<std::string> names() const; // sorted
  bool contains(const std::string& name) const;
  const TensorInfo& info(const std::string& name) const;

  // Reads a tensor's elements, row-major and converted to `dtype`, into `dst`,
  // which has room for all of them.
  void read(const std::string& name, mx::Dtype dtype, void* dst) const;

  // A plain number stored beside the tensors, which a torch file can hold.
  std::optional<double> scalar(const std::string& name) const;

 protected:
  // The elements of one tensor as bytes of the file's type, first to last.
  class ElementReader {
   public:
    virtual ~ElementReader() = default;
    virtual void read(void* dst, size_t size) = 0;
    // Called after the last element: checks what only then can be checked.
    virtual void finish() {}
  };

  explicit TensorFile(std::unique_ptr<const InputFile> file);

  const InputFile& file() const {
    return *file_;
  }

  // Checks name and dims and records the tensor; returns what was recorded.
  const TensorInfo& add_tensor(
      const std::string& name,
      mx::Dtype dtype,
      const std::vector<int64_t>& dims);
  void add_scalar(const std::string& name, double value);
  void check_name(const std::string& name) const;

  virtual std::unique_ptr<ElementReader> elements(
      const std::string& name) const = 0;

 private:
  void check_is_new(const std::string& name) const;

  std::unique_ptr<const InputFile> file_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, double> scalars_;
};

} // namespace nightingale
