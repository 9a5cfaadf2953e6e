#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine.h"
#include "nightingale/backends/gpu/kernel.h"

namespace nightingale::emulator {

// Whether one was found when the build was configured.
bool has_kernel_compiler();

// Where newly compiled kernels are kept; at first the folder of the build, in
// which they are looked for in any case.
std::filesystem::path& kernel_cache();

// A kernel compiled for its constants and the types of its arrays.
class Instance {
 public:
  // Throws std::runtime_error with the compiler's words where the kernel is not
  // correct MSL.
  Instance(
      const gpu::KernelSource& source,
      const std::vector<gpu::Constant>& constants,
      const std::vector<mx::array>& inputs,
      const std::vector<mx::array>& outputs);

  void (*run)(void* const* buffers, const Position& at);
  Machine** machine;
  size_t threadgroup_bytes;

  // The text of a line, or of what stands at a place in the code.
  std::string line(int number) const;
  std::string line_at(Address site) const;

 private:
  std::string text_;
  std::string library_;
};

} // namespace nightingale::emulator
