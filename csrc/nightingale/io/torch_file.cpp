#include "nightingale/io/torch_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nightingale/io/dtype.h"
#include "nightingale/io/unpickle.h"
#include "nightingale/io/zip.h"

namespace nightingale {

namespace {

constexpr uint64_t max_pickle_bytes = 64'000'000;
constexpr int max_depth = 64;
// Containers may be shared, so walking them can visit more than was built.
constexpr size_t max_visits = 1'000'000;
// How much larger than the file a tensor may be by repeating elements.
constexpr uint64_t max_expansion = 16;
constexpr uint64_t always_allowed_bytes = 1 << 20;

// Where the elements of a tensor lie in the bytes of its storage.
struct StridedView {
  const ZipEntry* entry;
  uint64_t begin; // offset of the first element
  uint64_t end; // past the last element in memory
  std::vector<uint64_t> dims;
  std::vector<uint64_t> strides; // in bytes
  size_t itemsize;
  bool contiguous;
};

bool is_contiguous(const StridedView& view) {
  uint64_t expected = view.itemsize;
  for (size_t i = view.dims.size(); i-- > 0;) {
    if (view.dims[i] != 1 && view.strides[i] != expected) {
      return false;
    }
    expected *= view.dims[i];
  }
  return true;
}

const PickleValue* find_key(const PickleDict& dict, std::string_view key) {
  for (auto& [name, value] : dict.items) {
    auto* text = std::get_if<const std::string*>(&name);
    if (text && **text == key) {
      return &value;
    }
  }
  return nullptr;
}

// The dictionary inside {"model": {...}}, {"model": [{...}]} or
// {"state_dict": {...}}, as the reference takes it.
const PickleDict* unwrap(const PickleDict* dict) {
  for (auto key : {"model", "state_dict"}) {
    const PickleValue* inner = find_key(*dict, key);
    if (!inner) {
      continue;
    }
    if (auto* list = std::get_if<PickleList*>(inner)) {
      if (!(*list)->items.empty()) {
        inner = &(*list)->items[0];
      }
    }
    if (auto* found = std::get_if<PickleDict*>(inner)) {
      return *found;
    }
  }
  return dict;
}

class TorchFile : public TensorFile {
 public:
  explicit TorchFile(std::unique_ptr<const InputFile> input)
      : TensorFile(std::move(input)), zip_(file()) {
    root_ = find_root();
    check_byte_order();
    std::string name = root_ + "data.pkl";
    std::string bytes = zip_.read(*zip_.find(name), max_pickle_bytes);
    Pickle pickle(bytes, path() + ": " + name);
    auto* top = std::get_if<PickleDict*>(&pickle.value());
    if (!top) {
      file().fail("expected a dictionary of tensors");
    }
    add_dict(*unwrap(*top), "", 0);
  }

 protected:
  std::unique_ptr<ElementReader> elements(
      const std::string& name) const override {
    const StridedView& view = views_.at(name);
    if (view.contiguous) {
      return std::make_unique<ContiguousReader>(zip_, view);
    }
    return std::make_unique<StridedReader>(zip_, view);
  }

 private:
  class ContiguousReader : public ElementReader {
   public:
    ContiguousReader(const ZipFile& zip, const StridedView& view)
        : reader_(zip, *view.entry, view.begin) {}

    void read(void* dst, size_t size) override {
      reader_.read(dst, size);
    }

    void finish() override {
      reader_.finish();
    }

   private:
    ZipFile::RangeReader reader_;
  };

  // Holds the part of the storage a tensor touches and gathers from it.
  class StridedReader : public ElementReader {
   public:
    StridedReader(const ZipFile& zip, const StridedView& view)
        : view_(view),
          bytes_(view.end - view.begin),
          index_(view.dims.size(), 0) {
      ZipFile::RangeReader reader(zip, *view.entry, view.begin);
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

    const StridedView& view_;
    std::vector<char> bytes_;
    std::vector<uint64_t> index_;
    uint64_t at_ = 0;
  };

  // torch puts everything into one folder, named after the file.
  std::string find_root() const {
    std::string root;
    for (auto& [name, entry] : zip_.entries()) {
      size_t slash = name.find('/');
      if (slash == std::string::npos || name.substr(slash) != "/data.pkl") {
        continue;
      }
      if (!root.empty()) {
        file().fail("the zip archive has more than one <name>/data.pkl");
      }
      root = name.substr(0, slash + 1);
    }
    if (root.empty()) {
      file().fail(
          "expected a zip archive written by torch.save, found no "
          "<name>/data.pkl in it");
    }
    return root;
  }

  void check_byte_order() const {
    auto* entry = zip_.find(root_ + "byteorder");
    if (!entry) {
      return;
    }
    std::string order = zip_.read(*entry, 16);
    if (order != "little") {
      file().fail("the byte order is '" + order + "', expected 'little'");
    }
  }

  void add_dict(const PickleDict& dict, const std::string& prefix, int depth) {
    for (auto& [key, value] : dict.items) {
      auto* name = std::get_if<const std::string*>(&key);
      if (!name) {
        file().fail("a key of the dictionary '" + prefix + "' is not a string");
      }
      add_value(value, prefix, **name, depth);
    }
  }

  void add_items(
      const std::vector<PickleValue>& items,
      const std::string& prefix,
      int depth) {
    for (size_t i = 0; i < items.size(); ++i) {
      add_value(items[i], prefix, std::to_string(i), depth);
    }
  }

  void add_value(
      const PickleValue& value,
      const std::string& prefix,
      const std::string& key,
      int depth) {
    if (depth > max_depth || ++visits_ > max_visits) {
      file().fail(
          "its containers nest deeper than " + std::to_string(max_depth) +
          " levels, contain themselves or repeat without end");
    }
    std::string name = prefix.empty() ? key : prefix + "." + key;
    check_name(name);
    if (auto* tensor = std::get_if<const PickleTensor*>(&value)) {
      add_view(name, **tensor);
    } else if (auto* dict = std::get_if<PickleDict*>(&value)) {
      add_dict(**dict, name, depth + 1);
    } else if (auto* list = std::get_if<PickleList*>(&value)) {
      add_items((*list)->items, name, depth + 1);
    } else if (auto* tuple = std::get_if<PickleTuple*>(&value)) {
      add_items((*tuple)->items, name, depth + 1);
    } else if (auto* integer = std::get_if<int64_t>(&value)) {
      add_scalar(name, static_cast<double>(*integer));
    } else if (auto* real = std::get_if<double>(&value)) {
      add_scalar(name, *real);
    } else if (auto* flag = std::get_if<bool>(&value)) {
      add_scalar(name, *flag);
    }
  }

  void add_view(const std::string& name, const PickleTensor& tensor) {
    const TensorInfo& info = add_tensor(name, tensor.dtype, tensor.shape);
    std::string what = "tensor '" + name + "'";
    const PickleStorage& storage = tensor.storage;
    std::string entry_name = root_ + "data/" + storage.key;
    auto* entry = zip_.find(entry_name);
    if (!entry) {
      file().fail(
          what + " needs zip entry '" + entry_name + "', which is missing");
    }
    uint64_t storage_itemsize = storage.dtype ? storage.dtype->size() : 1;
    if (entry->size % storage_itemsize != 0 ||
        entry->size / storage_itemsize != storage.size) {
      file().fail(
          what + " needs a storage of " + std::to_string(storage.size) +
          " elements, zip entry '" + entry_name + "' has " +
          std::to_string(entry->size) + " bytes");
    }
    if (info.nbytes() > max_expansion * file().size() + always_allowed_bytes) {
      file().fail(
          what + " of shape " + to_string(info.shape) +
          " repeats a few stored elements too often");
    }
    views_.emplace(name, make_view(what, tensor, info, *entry));
  }

  StridedView make_view(
      const std::string& what,
      const PickleTensor& tensor,
      const TensorInfo& info,
      const ZipEntry& entry) const {
    size_t itemsize = tensor.dtype.size();
    StridedView view{&entry, 0, 0, {}, {}, itemsize, true};
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
      view.strides.push_back(stride * itemsize);
      last += static_cast<unsigned __int128>(tensor.shape[i] - 1) * stride;
    }
    uint64_t available = entry.size / itemsize;
    if (negative || uint64_t(tensor.offset) >= available ||
        last >= available - uint64_t(tensor.offset)) {
      file().fail(
          what + " of shape " + to_string(info.shape) +
          " reaches outside its storage of " + std::to_string(available) +
          " elements");
    }
    view.begin = uint64_t(tensor.offset) * itemsize;
    view.end = view.begin + (uint64_t(last) + 1) * itemsize;
    view.contiguous = is_contiguous(view);
    return view;
  }

  ZipFile zip_;
  std::string root_; // ends in '/'
  std::map<std::string, StridedView> views_;
  size_t visits_ = 0;
};

} // namespace

std::shared_ptr<const TensorFile> open_torch_file(
    std::unique_ptr<const InputFile> file) {
  return std::make_shared<TorchFile>(std::move(file));
}

} // namespace nightingale
