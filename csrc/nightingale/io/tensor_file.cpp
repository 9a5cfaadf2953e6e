#include "nightingale/io/tensor_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include "nightingale/error.h"
#include "nightingale/io/crc32.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/safetensors.h"

namespace nightingale {

namespace {

// Far above any checkpoint; they keep a crafted file from costing memory.
constexpr size_t max_tensors = 100'000;
constexpr size_t max_name_bytes = 1024;
constexpr size_t max_dims = 8;
constexpr uint64_t max_tensor_bytes = uint64_t(1) << 48;

// Elements converted at a time; a block of each type stays in the cache.
constexpr size_t block_bytes = size_t(1) << 20;
// Summed while still in the second-level cache.
constexpr size_t summed_bytes = size_t(1) << 18;

} // namespace

std::string to_string(const mx::Shape& shape) {
  std::string text = "[";
  for (auto dim : shape) {
    text += text.size() > 1 ? ", " : "";
    text += dim == -1 ? "any" : std::to_string(dim);
  }
  return text + "]";
}

std::shared_ptr<const TensorFile> TensorFile::open(const std::string& path) {
  auto file = std::make_unique<const InputFile>(path);
  char head[24] = {};
  size_t head_size = std::min<uint64_t>(file->size(), sizeof head);
  file->read(0, head, head_size, "the file's first bytes");
  std::string_view start(head, head_size);

  if (start.starts_with("PK\x03\x04")) {
    file->fail(
        "this is a torch archive, which only the Python package reads; convert "
        "its folder with `nightingale pull --convert FOLDER` and open the "
        ".safetensors file");
  }
  if (start.size() > 8 && start[8] == '{') {
    return open_safetensors(std::move(file));
  }
  // A pickled 10-byte integer opens what torch.save wrote before 1.6.
  if (start.starts_with("\x80\x02\x8a\x0a")) {
    file->fail(
        "this is a torch file in the format from before torch 1.6; to convert "
        "it, load it with torch.load and write it again with torch.save or "
        "safetensors.torch.save_file");
  }
  if (start.starts_with("version https://git-lfs")) {
    file->fail(
        "this is a Git LFS pointer, not the checkpoint itself; fetch it with "
        "`git lfs pull`");
  }
  file->fail(
      "expected a safetensors file or a torch zip archive, found neither (" +
      std::to_string(file->size()) + " bytes)");
}

// The elements of one tensor as bytes of the file's type, first to last. The
// first reader of a range that has a CRC reads all of it and checks it: what
// many tensors share is not summed for each.
class TensorFile::ElementReader {
 public:
  ElementReader(const TensorFile& file, const View& view, size_t itemsize)
      : file_(file), view_(view), range_(*view.range), itemsize_(itemsize) {
    if (range_.crc) {
      std::lock_guard lock(file.mutex_);
      verify_ = !file.verified_.contains(&range_);
    }
    if (verify_) {
      crc_ = crc32(0, range_.line.data(), range_.line.size());
      skip(view.begin);
    } else {
      at_ = view.begin;
    }
    if (!view.strides.empty()) {
      bytes_.resize(view.end - view.begin);
      read_range(bytes_.data(), bytes_.size());
      finish();
      index_.resize(view.dims.size());
    }
  }

  void read(void* dst, size_t size) {
    auto* out = static_cast<char*>(dst);
    if (view_.strides.empty()) {
      read_range(out, size);
      return;
    }
    for (size_t done = 0; done < size; done += itemsize_) {
      std::memcpy(out + done, bytes_.data() + element_, itemsize_);
      advance();
    }
  }

  // To be called after the last element.
  void finish() {
    if (!verify_) {
      return;
    }
    skip(range_.size - at_);
    if (crc_ != *range_.crc) {
      file_.file().fail(
          range_.line.empty() ? "the checksum of " + range_.what + " is " +
                  std::to_string(crc_) + ", expected " +
                  std::to_string(*range_.crc) + "; the file is damaged"
                              : "the file is damaged: " + range_.what +
                  " does not have its checksum");
    }
    std::lock_guard lock(file_.mutex_);
    file_.verified_.insert(&range_);
    verify_ = false;
  }

 private:
  void read_range(char* out, size_t size) {
    while (size > 0) {
      size_t count = std::min(size, verify_ ? summed_bytes : size);
      file_.file().read(range_.offset + at_, out, count, range_.what);
      if (verify_) {
        crc_ = crc32(crc_, out, count);
      }
      at_ += count;
      out += count;
      size -= count;
    }
  }

  void skip(uint64_t size) {
    std::vector<char> block(std::min<uint64_t>(size, summed_bytes));
    for (uint64_t left = size; left > 0;) {
      size_t count = std::min<uint64_t>(left, block.size());
      read_range(block.data(), count);
      left -= count;
    }
  }

  void advance() {
    for (size_t axis = view_.dims.size(); axis-- > 0;) {
      element_ += view_.strides[axis];
      if (++index_[axis] < view_.dims[axis]) {
        return;
      }
      element_ -= view_.strides[axis] * view_.dims[axis];
      index_[axis] = 0;
    }
  }

  const TensorFile& file_;
  const View& view_;
  const Range& range_;
  const size_t itemsize_;
  bool verify_ = false;
  uint64_t at_ = 0; // offset in the range
  uint32_t crc_ = 0;

  // Of elements that do not follow each other: the part of the range that they
  // touch, and where the next one is in it.
  std::vector<char> bytes_;
  std::vector<uint64_t> index_;
  uint64_t element_ = 0;
};

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (auto& [name, info] : tensors_) {
    names.push_back(name);
  }
  return names;
}

const TensorInfo& TensorFile::info(const std::string& name) const {
  auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    file_->fail("there is no tensor '" + name + "'");
  }
  return found->second;
}

std::optional<double> TensorFile::scalar(const std::string& name) const {
  auto found = scalars_.find(name);
  return found == scalars_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> TensorFile::metadata(const std::string& key) const {
  auto found = metadata_.find(key);
  return found == metadata_.end() ? std::nullopt : std::optional(found->second);
}

void TensorFile::read(const std::string& name, mx::Dtype dtype, void* dst)
    const {
  const TensorInfo& tensor = info(name);
  if (!is_convertible(tensor.dtype, dtype)) {
    file_->fail(
        "tensor '" + name + "' is " + dtype_name(tensor.dtype) +
        ", which cannot be read as " + dtype_name(dtype));
  }
  if (auto quantized = quantized_.find(name); quantized != quantized_.end()) {
    read_dequantized(name, quantized->second, dtype, dst);
  } else {
    read_elements(name, tensor, dtype, dst);
  }
}

void TensorFile::read_elements(
    const std::string& name,
    const TensorInfo& tensor,
    mx::Dtype dtype,
    void* dst) const {
  ElementReader reader(*this, views_.at(name), tensor.dtype.size());
  if (tensor.dtype == dtype && dtype != mx::bool_) {
    reader.read(dst, tensor.nbytes());
    reader.finish();
    return;
  }

  auto* out = static_cast<char*>(dst);
  size_t block_size = block_bytes / tensor.dtype.size();
  std::vector<char> block(std::min<uint64_t>(block_bytes, tensor.nbytes()));
  for (uint64_t done = 0; done < tensor.size;) {
    size_t count = std::min<uint64_t>(block_size, tensor.size - done);
    reader.read(block.data(), count * tensor.dtype.size());
    size_t converted =
        convert_elements(block.data(), tensor.dtype, out, dtype, count);
    if (converted != count) {
      file_->fail(
          "tensor '" + name + "': element " + std::to_string(done + converted) +
          " does not fit " + dtype_name(dtype));
    }
    out += count * dtype.size();
    done += count;
  }
  reader.finish();
}

const TensorInfo& TensorFile::add_tensor(
    const std::string& name,
    mx::Dtype dtype,
    const std::vector<int64_t>& dims) {
  check_is_new(name);
  if (dims.size() > max_dims) {
    file_->fail(
        "tensor '" + name + "' has " + std::to_string(dims.size()) +
        " dimensions, expected at most " + std::to_string(max_dims));
  }
  mx::Shape shape;
  uint64_t size = 1;
  bool too_large = false;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > std::numeric_limits<mx::ShapeElem>::max()) {
      file_->fail(
          "tensor '" + name + "' has a dimension of " + std::to_string(dim) +
          ", expected 0 to " +
          std::to_string(std::numeric_limits<mx::ShapeElem>::max()));
    }
    shape.push_back(static_cast<mx::ShapeElem>(dim));
    too_large |= __builtin_mul_overflow(size, uint64_t(dim), &size);
  }
  if (too_large || size > max_tensor_bytes / dtype.size()) {
    file_->fail(
        "tensor '" + name + "' of shape " + to_string(shape) +
        " is larger than any file can hold");
  }
  return tensors_.emplace(name, TensorInfo{dtype, std::move(shape), size})
      .first->second;
}

void TensorFile::add_scalar(const std::string& name, double value) {
  check_is_new(name);
  scalars_.emplace(name, value);
}

void TensorFile::check_is_new(const std::string& name) const {
  if (name.size() > max_name_bytes) {
    file_->fail(
        "a tensor's name is " + std::to_string(name.size()) +
        " bytes long, expected at most " + std::to_string(max_name_bytes));
  }
  if (tensors_.contains(name) || scalars_.contains(name)) {
    file_->fail("the name '" + name + "' appears twice");
  }
  if (tensors_.size() + scalars_.size() >= max_tensors) {
    file_->fail("expected at most " + std::to_string(max_tensors) + " tensors");
  }
}

int size_of(
    const TensorFile& file,
    const std::string& name,
    int ndim,
    int axis) {
  const auto& shape = file.info(name).shape;
  if (static_cast<int>(shape.size()) != ndim) {
    throw Error(
        name + ": expected " + std::to_string(ndim) +
        " dimensions, found shape " + to_string(shape) + " in " + file.path());
  }
  return shape[axis];
}

int count_layers(const TensorFile& file, const std::string& prefix) {
  int highest = -1;
  for (const auto& name : file.names()) {
    if (name.starts_with(prefix)) {
      int layer = -1;
      const char* digits = name.data() + prefix.size();
      std::from_chars(digits, name.data() + name.size(), layer);
      highest = std::max(highest, layer);
    }
  }
  return highest == std::numeric_limits<int>::max() ? highest : highest + 1;
}

mx::Dtype stored_dtype(const TensorFile& file, const std::string& name) {
  auto dtype = file.info(name).dtype;
  bool half = dtype == mx::float16 || dtype == mx::bfloat16;
  return half ? dtype : mx::float32;
}

} // namespace nightingale
