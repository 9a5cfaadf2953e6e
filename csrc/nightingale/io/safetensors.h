#pragma once

#include <memory>
#include <string>

#include "nightingale/io/input_file.h"
#include "nightingale/io/tensor_file.h"

namespace nightingale {

// Opens a safetensors file: a header length, a JSON header and the elements,
// which must cover the rest of the file without gap or overlap.
std::shared_ptr<const TensorFile> open_safetensors(
    std::unique_ptr<const InputFile> file);

// "name F16 [2, 64]": in the checksum, so that it covers the header too.
std::string checksum_line(
    const std::string& name,
    const std::string& type,
    const mx::Shape& shape);

} // namespace nightingale
