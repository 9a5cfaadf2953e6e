#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nightingale/io/tensor_file.h"

namespace nightingale {

// A range of bytes in a file, for tensors to share.
struct StoredRange {
  std::string name;
  uint64_t offset;
  uint64_t size;
  // CRC-32 of the bytes, which a zip archive has for its entries.
  std::optional<uint32_t> crc = std::nullopt;
};

// A view of a range. Offset and strides are in elements.
struct StridedTensor {
  std::string name;
  mx::Dtype dtype;
  std::string range;
  int64_t offset;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

struct StridedLayout {
  std::vector<StoredRange> ranges;
  std::vector<StridedTensor> tensors;
  std::vector<std::pair<std::string, double>> scalars;
  // Words, scales and biases are the parts of quantized tensors.
  bool quantized = false;
};

// Opens a file whose format the caller has read: a torch archive, or a
// checkpoint with names and orders of its own. A range is checked against its
// CRC when it is first read.
std::shared_ptr<const TensorFile> open_strided_file(
    const std::string& path,
    const StridedLayout& layout);

} // namespace nightingale
