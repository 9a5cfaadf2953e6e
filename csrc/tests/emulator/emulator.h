#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "emulator/group.h"
#include "emulator/instance.h"
#include "nightingale/backends/testing.h"

namespace nightingale::emulator {

// What a GPU may refuse, and what it is better at than MLX.
struct Limits {
  int threads = 1024; // in a group
  size_t threadgroup_bytes = 32 * 1024;
  bool tiles = false; // whether products of many rows are taken by kernels
};

// Runs Metal kernels on the CPU and throws std::runtime_error where one does
// what a GPU would get away with, or not: an access out of bounds, a race, a
// divergent barrier, memory that nobody wrote, words that MSL does not have.
class MetalEmulator : public test_hooks::KernelEmulator {
 public:
  void run(const test_hooks::KernelRun& run) override;

  bool has_tiles() const override {
    return limits.tiles;
  }

  Limits limits;

  // Called before a kernel runs that has been compiled for the first time.
  std::function<void(const test_hooks::KernelRun&)> on_compile;

  // Kernels that have run since this was last asked.
  std::set<std::string> take_launched();
  // From now on kernels are those of another folder than metal/.
  void use_sources(const std::filesystem::path& folder);

 private:
  const gpu::KernelSource& replaced(
      const gpu::KernelSource& source,
      const gpu::KernelNumbers& numbers);
  void run(const Instance& instance, const test_hooks::KernelRun& run);

  std::mutex mutex_;
  Groups groups_;
  std::unordered_map<std::string, std::unique_ptr<Instance>> instances_;
  std::set<std::string> launched_;
  std::optional<std::filesystem::path> folder_;
  std::map<std::string, gpu::KernelSource> replacements_;
};

} // namespace nightingale::emulator
