#pragma once

#include <optional>

#include "mlx/array.h"

namespace nightingale {

namespace mx = mlx::core;

// Where weights live: large blocks that tensors are placed in one after the
// other. A token streams through all of them, so they start on cache lines and
// the blocks are in huge pages, which a tensor alone would often be too small
// for. A block is freed with the last array in it.
class WeightMemory {
 public:
  // An array whose elements are still to be written.
  mx::array allocate(const mx::Shape& shape, mx::Dtype dtype);

 private:
  std::optional<mx::array> block_; // uint8
  size_t used_ = 0; // bytes of the block
};

} // namespace nightingale
