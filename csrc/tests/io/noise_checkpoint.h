#pragma once

#include <string>
#include <vector>

#include "io/file_writers.h"
#include "ops/arrays.h"

namespace nightingale::testing {

// A safetensors file of random float32 tensors.
class NoiseCheckpoint {
 public:
  // `left_out` is a tensor that add() skips.
  explicit NoiseCheckpoint(std::string left_out = "")
      : left_out_(std::move(left_out)) {}

  // Uniform in offset ± scale.
  void add(
      const std::string& name,
      const std::vector<int>& shape,
      float scale,
      float offset = 0.0f) {
    size_t count = 1;
    for (int size : shape) {
      count *= size;
    }
    auto numbers = noise(count, ++seed_);
    for (float& x : numbers) {
      x = x * scale + offset;
    }
    add(name, shape, numbers);
  }

  void add(
      const std::string& name,
      const std::vector<int>& shape,
      const std::vector<float>& numbers) {
    if (name == left_out_) {
      return;
    }
    std::string sizes;
    for (int size : shape) {
      sizes += (sizes.empty() ? "[" : ",") + std::to_string(size);
    }
    file_.add(name, "F32", sizes + "]", bytes_of(numbers));
  }

  std::string finish() {
    return file_.finish();
  }

 private:
  std::string left_out_;
  uint32_t seed_ = 0;
  SafetensorsWriter file_;
};

// The message of the std::invalid_argument that `body` throws, "" where it
// throws none.
template <typename Body>
std::string argument_error_of(Body&& body) {
  try {
    body();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

} // namespace nightingale::testing
