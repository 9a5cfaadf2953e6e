#include "nightingale/io/tensor_sizes.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "nightingale/error.h"

namespace nightingale {

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
