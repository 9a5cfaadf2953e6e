#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "nightingale/backends/testing.h"

namespace nightingale::testing {

// In place of a GPU: runs nothing, gives zeros, and keeps the text that MLX
// would compile on Metal for each kernel, constants, types and group size.
class LaunchRecorder : public test_hooks::KernelEmulator {
 public:
  explicit LaunchRecorder(bool tiles) : tiles_(tiles) {}

  std::optional<std::vector<mx::array>> replacement(
      const gpu::Launch& launch) override;
  void run(const test_hooks::KernelRun& run) override;

  bool has_tiles() const override {
    return tiles_;
  }

  // By the name that MLX gives the kernel.
  const std::map<std::string, std::string>& texts() const {
    return texts_;
  }

 private:
  void keep(const gpu::Launch& launch, int threads);

  bool tiles_;
  std::unordered_set<std::string> seen_;
  std::map<std::string, std::string> texts_;
};

} // namespace nightingale::testing
