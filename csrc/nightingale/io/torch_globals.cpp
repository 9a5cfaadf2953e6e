#include "nightingale/io/torch_globals.h"

#include <algorithm>
#include <map>

namespace nightingale {

namespace {

constexpr size_t max_dims = 8;
constexpr size_t max_key_digits = 20;

const std::map<std::string_view, PickleValue>& allowed_globals() {
  static const std::map<std::string_view, PickleValue> globals = {
      {"collections.OrderedDict", PickleGlobal::ordered_dict},
      {"torch._utils._rebuild_tensor_v2", PickleGlobal::rebuild_tensor_v2},
      {"torch._utils._rebuild_tensor_v3", PickleGlobal::rebuild_tensor_v3},
      {"torch._utils._rebuild_parameter", PickleGlobal::rebuild_parameter},
      {"torch.Size", PickleGlobal::size},
      {"torch.storage.UntypedStorage", PickleGlobal::untyped_storage},
      {"torch.FloatStorage", PickleDtype{mx::float32}},
      {"torch.HalfStorage", PickleDtype{mx::float16}},
      {"torch.BFloat16Storage", PickleDtype{mx::bfloat16}},
      {"torch.DoubleStorage", PickleDtype{mx::float64}},
      {"torch.CharStorage", PickleDtype{mx::int8}},
      {"torch.ShortStorage", PickleDtype{mx::int16}},
      {"torch.IntStorage", PickleDtype{mx::int32}},
      {"torch.LongStorage", PickleDtype{mx::int64}},
      {"torch.ByteStorage", PickleDtype{mx::uint8}},
      {"torch.BoolStorage", PickleDtype{mx::bool_}},
      {"torch.float32", PickleDtype{mx::float32}},
      {"torch.float16", PickleDtype{mx::float16}},
      {"torch.bfloat16", PickleDtype{mx::bfloat16}},
      {"torch.float64", PickleDtype{mx::float64}},
      {"torch.int8", PickleDtype{mx::int8}},
      {"torch.int16", PickleDtype{mx::int16}},
      {"torch.int32", PickleDtype{mx::int32}},
      {"torch.int64", PickleDtype{mx::int64}},
      {"torch.uint8", PickleDtype{mx::uint8}},
      {"torch.uint16", PickleDtype{mx::uint16}},
      {"torch.uint32", PickleDtype{mx::uint32}},
      {"torch.uint64", PickleDtype{mx::uint64}},
      {"torch.bool", PickleDtype{mx::bool_}}};
  return globals;
}

bool is_number(const std::string& key) {
  return !key.empty() && key.size() <= max_key_digits &&
      std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<int64_t> integers(const PickleValue& value) {
  auto& items = pickled<PickleTuple*>(value, "a shape or strides")->items;
  if (items.size() > max_dims) {
    throw Error(
        "a tensor has " + std::to_string(items.size()) +
        " dimensions, expected at most " + std::to_string(max_dims));
  }
  std::vector<int64_t> result;
  for (auto& item : items) {
    result.push_back(pickled<int64_t>(item, "an integer"));
  }
  return result;
}

PickleTensor make_tensor(
    const std::vector<PickleValue>& arguments,
    mx::Dtype dtype,
    size_t metadata_at) {
  if (arguments.size() > metadata_at) {
    auto* metadata = pickled<PickleDict*>(arguments[metadata_at], "metadata");
    if (!metadata->items.empty()) {
      throw Error(
          "a tensor is a lazy negation or conjugate, which is not supported");
    }
  }
  PickleTensor tensor{
      *pickled<const PickleStorage*>(arguments[0], "a storage"),
      dtype,
      pickled<int64_t>(arguments[1], "a tensor's offset"),
      integers(arguments[2]),
      integers(arguments[3])};
  if (tensor.shape.size() != tensor.strides.size()) {
    throw Error("a tensor's shape and strides differ in length");
  }
  return tensor;
}

} // namespace

std::optional<PickleValue> find_global(std::string_view name) {
  auto found = allowed_globals().find(name);
  return found == allowed_globals().end() ? std::nullopt
                                          : std::optional(found->second);
}

PickleStorage make_storage(const PickleTuple& id) {
  auto& fields = id.items;
  if (fields.size() != 5 ||
      *pickled<const std::string*>(fields[0], "'storage'") != "storage") {
    throw Error("a persistent id is not a storage of five fields");
  }
  PickleStorage storage;
  if (auto* type = std::get_if<PickleDtype>(&fields[1])) {
    storage.dtype = type->dtype;
  } else if (
      pickled<PickleGlobal>(fields[1], "a storage type") !=
      PickleGlobal::untyped_storage) {
    throw Error("expected a storage type");
  }
  storage.key = *pickled<const std::string*>(fields[2], "a storage key");
  if (!is_number(storage.key)) {
    throw Error("a storage key is not a number");
  }
  auto size = pickled<int64_t>(fields[4], "a storage size");
  if (size < 0) {
    throw Error("a storage has " + std::to_string(size) + " elements");
  }
  storage.size = static_cast<uint64_t>(size);
  return storage;
}

PickleTensor make_tensor_v2(const std::vector<PickleValue>& arguments) {
  auto* storage = pickled<const PickleStorage*>(arguments[0], "a storage");
  if (!storage->dtype) {
    throw Error("a tensor has no element type");
  }
  return make_tensor(arguments, *storage->dtype, 6);
}

PickleTensor make_tensor_v3(const std::vector<PickleValue>& arguments) {
  auto type = pickled<PickleDtype>(arguments[6], "an element type");
  return make_tensor(arguments, type.dtype, 7);
}

} // namespace nightingale
