#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "mlx/array.h"

namespace nightingale {

namespace mx = mlx::core;

// What `nightingale quantize` writes beside the tensors of a safetensors file:
// an object in JSON under "nightingale" in the header's metadata.
struct FileNotes {
  // The shapes that rows of codes stand for, where these are not matrices.
  std::map<std::string, mx::Shape> shapes;
  // CRC-32 of tensors by name: of their line (see below), then of their bytes.
  std::map<std::string, uint32_t> checksums;

  // Errors begin with `what`.
  static FileNotes parse(const std::string& text, const std::string& what);
};

// "name F16 [2, 64]": in the checksum, so that it covers the header too.
std::string checksum_line(
    const std::string& name,
    const std::string& type,
    const mx::Shape& shape);

} // namespace nightingale
