#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "mlx/dtype.h"
#include "nightingale/error.h"

namespace nightingale {

namespace mx = mlx::core;

struct PickleTuple;
struct PickleList;
struct PickleDict;
struct PickleStorage;
struct PickleTensor;

struct PickleNone {};

// The names a pickle may import; each is a word to us, never code.
enum class PickleGlobal {
  ordered_dict,
  rebuild_tensor_v2,
  rebuild_tensor_v3,
  rebuild_parameter,
  size,
  untyped_storage,
};

// torch.float32 and torch.FloatStorage both stand for an element type.
struct PickleDtype {
  mx::Dtype dtype;
};

// Containers are reached by pointer because a pickle may use one twice, or
// even put one inside itself: whoever walks them must bound the walk.
using PickleValue = std::variant<
    PickleNone,
    bool,
    int64_t,
    double,
    const std::string*,
    PickleTuple*,
    PickleList*,
    PickleDict*,
    const PickleStorage*,
    const PickleTensor*,
    PickleGlobal,
    PickleDtype>;

struct PickleTuple {
  std::vector<PickleValue> items;
};

struct PickleList {
  std::vector<PickleValue> items;
};

struct PickleDict {
  bool ordered = false;
  std::vector<std::pair<PickleValue, PickleValue>> items;
};

struct PickleStorage {
  std::optional<mx::Dtype> dtype; // none: `size` counts bytes
  std::string key;
  uint64_t size = 0; // elements
};

struct PickleTensor {
  PickleStorage storage;
  mx::Dtype dtype;
  int64_t offset = 0; // in elements
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; // in elements
};

// The alternative T of `value`, or an Error that expected `what`.
template <typename T>
T pickled(const PickleValue& value, std::string_view what) {
  if (auto* found = std::get_if<T>(&value)) {
    return *found;
  }
  throw Error("expected " + std::string(what));
}

} // namespace nightingale
