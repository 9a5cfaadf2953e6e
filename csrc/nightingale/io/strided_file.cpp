#include "nightingale/io/strided_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "nightingale/io/crc32.h"

namespace nightingale {

namespace {

// How much larger than the file a tensor may be by repeating elements.
constexpr uint64_t max_expansion = 16;
constexpr uint64_t always_allowed_bytes = 1 << 20;
// Summed while still in the second-level cache.
constexpr size_t block_bytes = size_t(1) << 18;

// Where the elements of a tensor are in the bytes of its range.
struct View {
  const StoredRange* range;
  uint64_t begin; // offset of the first element
  uint64_t end; // past the last element in memory
  std::vector<uint64_t> dims;
  std::vector<uint64_t> strides; // in bytes
  size_t itemsize;
};

bool is_contiguous(const View& view) {
  uint64_t expected = view.itemsize;
  for (size_t i = view.dims.size(); i-- > 0;) {
    if (view.dims[i] != 1 && view.strides[i] != expected) {
      return false;
    }
    expected *= view.dims[i];
  }
  return true;
}

class StridedFile : public TensorFile {
 public:
  StridedFile(const std::string& path, const StridedLayout& layout)
      : TensorFile(std::make_unique<const InputFile>(path)) {
    for (auto& range : layout.ranges) {
      if (range.size > file().size() ||
          range.offset > file().size() - range.size) {
        file().fail(
            "file is truncated: zip entry '" + range.name + "' needs " +
            std::to_string(range.size) + " bytes at " +
            std::to_string(range.offset) + ", file has " +
            std::to_string(file().size()));
      }
      ranges_.emplace(range.name, range);
    }
    for (auto& tensor : layout.tensors) {
      views_.emplace(tensor.name, make_view(tensor));
    }
    for (auto& [name, value] : layout.scalars) {
      add_scalar(name, value);
    }
  }

 protected:
  std::unique_ptr<ElementReader> elements(
      const std::string& name) const override {
    const View& view = views_.at(name);
    if (is_contiguous(view)) {
      return std::make_unique<RangeReader>(*this, *view.range, view.begin);
    }
    return std::make_unique<StridedReader>(*this, view);
  }

 private:
  // Reads a range from `begin` on. The first reader of a range reads all of it
  // to check its CRC, which later ones trust: a range that thousands of tensors
  // share is not summed for each.
  class RangeReader : public ElementReader {
   public:
    RangeReader(
        const StridedFile& file,
        const StoredRange& range,
        uint64_t begin)
        : file_(file), range_(range), verify_(!file.is_verified(range)) {
      if (verify_) {
        skip(begin);
      } else {
        at_ = begin;
      }
    }

    void read(void* dst, size_t size) override {
      auto* out = static_cast<char*>(dst);
      while (size > 0) {
        size_t count = std::min(size, verify_ ? block_bytes : size);
        file_.file().read(
            range_.offset + at_, out, count, "zip entry '" + range_.name + "'");
        if (verify_) {
          crc_ = crc32(crc_, out, count);
        }
        at_ += count;
        out += count;
        size -= count;
      }
    }

    void finish() override {
      if (!verify_) {
        return;
      }
      skip(range_.size - at_);
      if (crc_ != range_.crc) {
        file_.file().fail(
            "the checksum of zip entry '" + range_.name + "' is " +
            std::to_string(crc_) + ", expected " + std::to_string(range_.crc) +
            "; the file is damaged");
      }
      file_.set_verified(range_);
    }

   private:
    void skip(uint64_t size) {
      std::vector<char> block(std::min<uint64_t>(size, block_bytes));
      for (uint64_t left = size; left > 0;) {
        size_t count = std::min<uint64_t>(left, block.size());
        read(block.data(), count);
        left -= count;
      }
    }

    const StridedFile& file_;
    const StoredRange& range_;
    const bool verify_;
    uint64_t at_ = 0;
    uint32_t crc_ = 0;
  };

  // Holds the part of the range that a tensor touches and gathers from it.
  class StridedReader : public ElementReader {
   public:
    StridedReader(const StridedFile& file, const View& view)
        : view_(view),
          bytes_(view.end - view.begin),
          index_(view.dims.size(), 0) {
      RangeReader reader(file, *view.range, view.begin);
      reader.read(bytes_.data(), bytes_.size());
      reader.finish();
    }

    void read(void* dst, size_t size) override {
      auto* out = static_cast<char*>(dst);
      for (size_t done = 0; done < size; done += view_.itemsize) {
        std::memcpy(out + done, bytes_.data() + at_, view_.itemsize);
        advance();
      }
    }

   private:
    void advance() {
      for (size_t axis = view_.dims.size(); axis-- > 0;) {
        at_ += view_.strides[axis];
        if (++index_[axis] < view_.dims[axis]) {
          return;
        }
        at_ -= view_.strides[axis] * view_.dims[axis];
        index_[axis] = 0;
      }
    }

    const View& view_;
    std::vector<char> bytes_;
    std::vector<uint64_t> index_;
    uint64_t at_ = 0;
  };

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
    const StoredRange& range = found->second;
    View view{&range, 0, 0, {}, {}, tensor.dtype.size()};
    if (info.size == 0) {
      return view;
    }
    // The last element in memory, in a type that cannot overflow: at most
    // eight products of a 31-bit dim and a 63-bit stride.
    auto last = static_cast<unsigned __int128>(0);
    bool negative = tensor.offset < 0;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      negative |= tensor.strides[i] < 0;
      view.dims.push_back(uint64_t(tensor.shape[i]));
      // The stride of a dimension of one element is never used.
      uint64_t stride = tensor.shape[i] == 1 ? 0 : uint64_t(tensor.strides[i]);
      view.strides.push_back(stride * view.itemsize);
      last += static_cast<unsigned __int128>(tensor.shape[i] - 1) * stride;
    }
    uint64_t available = range.size / view.itemsize;
    if (negative || uint64_t(tensor.offset) >= available ||
        last >= available - uint64_t(tensor.offset)) {
      file().fail(
          what + " reaches outside its storage of " +
          std::to_string(available) + " elements");
    }
    view.begin = uint64_t(tensor.offset) * view.itemsize;
    view.end = view.begin + (uint64_t(last) + 1) * view.itemsize;
    return view;
  }

  bool is_verified(const StoredRange& range) const {
    std::lock_guard lock(mutex_);
    return verified_.contains(&range);
  }

  void set_verified(const StoredRange& range) const {
    std::lock_guard lock(mutex_);
    verified_.insert(&range);
  }

  std::map<std::string, StoredRange> ranges_;
  std::map<std::string, View> views_;
  mutable std::mutex mutex_;
  mutable std::set<const StoredRange*> verified_;
};

} // namespace

std::shared_ptr<const TensorFile> open_strided_file(
    const std::string& path,
    const StridedLayout& layout) {
  return std::make_shared<StridedFile>(path, layout);
}

} // namespace nightingale
