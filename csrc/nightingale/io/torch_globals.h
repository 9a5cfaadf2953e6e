#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nightingale/io/pickle_value.h"

namespace nightingale {

// What a pickle may import: the names torch.save needs for tensors in plain
// containers, and no other.
std::optional<PickleValue> find_global(std::string_view name);

// A storage from its persistent id, ('storage', type, key, location, size). The
// key must be a number: it becomes part of the name of a zip entry.
PickleStorage make_storage(const PickleTuple& id);

// torch._utils._rebuild_tensor_v2(storage, offset, shape, strides,
// requires_grad, hooks[, metadata]), where the storage has the type, and v3,
// which takes the type before the metadata.
PickleTensor make_tensor_v2(const std::vector<PickleValue>& arguments);
PickleTensor make_tensor_v3(const std::vector<PickleValue>& arguments);

} // namespace nightingale
