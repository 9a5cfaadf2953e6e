#pragma once

#include <string>

#include "nightingale/io/tensor_file.h"

namespace nightingale {

// Dimension `axis` of a tensor that must have `ndim` of them.
int size_of(
    const TensorFile& file,
    const std::string& name,
    int ndim,
    int axis);

// One more than the highest number that follows `prefix` in any tensor's name,
// so that a layer with tensors missing is an error and not the end of the
// stack; 0 where there is none.
int count_layers(const TensorFile& file, const std::string& prefix);

// The type to keep a model's matrices in where the caller names none: that of
// the tensor `name` if it is float16 or bfloat16, otherwise float32.
mx::Dtype stored_dtype(const TensorFile& file, const std::string& name);

} // namespace nightingale
