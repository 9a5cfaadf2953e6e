#include "nightingale/io/strided_file.h"

namespace nightingale {

namespace {

// How much larger than the file a tensor may be by repeating elements.
constexpr uint64_t max_expansion = 16;
constexpr uint64_t always_allowed_bytes = 1 << 20;

bool is_contiguous(
    const std::vector<uint64_t>& dims,
    const std::vector<uint64_t>& strides,
    uint64_t itemsize) {
  uint64_t expected = itemsize;
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != expected) {
      return false;
    }
    expected *= dims[i];
  }
  return true;
}

class StridedFile : public TensorFile {
 public:
  StridedFile(const std::string& path, const StridedLayout& layout)
      : TensorFile(std::make_unique<const InputFile>(path)) {
    for (auto& [name, offset, size, crc] : layout.ranges) {
      std::string what = (crc ? "zip entry '" : "tensor '") + name + "'";
      if (size > file().size() || offset > file().size() - size) {
        file().fail(
            "file is truncated: " + what + " needs " + std::to_string(size) +
            " bytes at " + std::to_string(offset) + ", file has " +
            std::to_string(file().size()));
      }
      ranges_.emplace(name, Range{what, offset, size, crc});
    }
    for (auto& tensor : layout.tensors) {
      views_.emplace(tensor.name, make_view(tensor));
    }
    for (auto& [name, value] : layout.scalars) {
      add_scalar(name, value);
    }
    if (layout.quantized) {
      join_quantized({});
    }
  }

 private:
  View make_view(const StridedTensor& tensor) {
    const TensorInfo& info =
        add_tensor(tensor.name, tensor.dtype, tensor.shape);
    std::string what =
        "tensor '" + tensor.name + "' of shape " + to_string(info.shape);
    if (info.nbytes() > max_expansion * file().size() + always_allowed_bytes) {
      file().fail(what + " repeats a few stored elements too often");
    }
    auto found = ranges_.find(tensor.range);
    if (found == ranges_.end() ||
        tensor.strides.size() != tensor.shape.size()) {
      file().fail(what + " has no stored elements, or a stride too few");
    }
    const Range& range = found->second;
    View view{&range, 0, 0};
    if (info.size == 0) {
      return view;
    }
    uint64_t itemsize = tensor.dtype.size();
    // The last element in memory, in a type that cannot overflow: at most
    // eight products of a 31-bit dim and a 63-bit stride.
    auto last = static_cast<unsigned __int128>(0);
    bool negative = tensor.offset < 0;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      negative |= tensor.strides[i] < 0;
      view.dims.push_back(uint64_t(tensor.shape[i]));
      // The stride of a dimension of one element is never used.
      uint64_t stride = tensor.shape[i] == 1 ? 0 : uint64_t(tensor.strides[i]);
      view.strides.push_back(stride * itemsize);
      last += static_cast<unsigned __int128>(tensor.shape[i] - 1) * stride;
    }
    uint64_t available = range.size / itemsize;
    if (negative || uint64_t(tensor.offset) >= available ||
        last >= available - uint64_t(tensor.offset)) {
      file().fail(
          what + " reaches outside its storage of " +
          std::to_string(available) + " elements");
    }
    view.begin = uint64_t(tensor.offset) * itemsize;
    view.end = view.begin + (uint64_t(last) + 1) * itemsize;
    if (is_contiguous(view.dims, view.strides, itemsize)) {
      view.dims.clear();
      view.strides.clear();
    }
    return view;
  }
};

} // namespace

std::shared_ptr<const TensorFile> open_strided_file(
    const std::string& path,
    const StridedLayout& layout) {
  return std::make_shared<StridedFile>(path, layout);
}

} // namespace nightingale
