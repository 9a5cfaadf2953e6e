#pragma once

#include <array>
#include <bit>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mlx/fast.h"
#include "nightingale/backends/gpu/kernel_source.h"
#include "nightingale/ops/backend.h"

// The one place that runs the kernels of metal/.

namespace nightingale::gpu {

struct KernelOutput {
  mx::Shape shape;
  mx::Dtype dtype = mx::float32;
};

// A type or size that a kernel is compiled for.
using Constant = std::pair<std::string, mx::fast::TemplateArg>;

struct Launch {
  const char* kernel;
  std::vector<mx::array> inputs; // row-major where there is state
  // Written in place. Whoever reads this memory next takes the launch's first
  // output in as well, or what was made of it: only that orders the two.
  std::vector<mx::array> state = {};
  std::vector<KernelOutput> outputs;
  std::vector<Constant> constants = {};
  std::vector<std::string> absent = {}; // inputs and outputs it does without
  std::array<int, 3> groups{1, 1, 1}; // of THREADS threads each
  // Sizes of a group, the best first: the first that the GPU accepts is used.
  // All give the same result. The kernel sees the size as THREADS.
  std::vector<int> threads;

  // The input `name`, the next in the kernel's list, which may be none.
  void add_optional(const char* name, const std::optional<mx::array>& input) {
    if (input) {
      inputs.push_back(*input);
    } else {
      absent.push_back(name);
    }
  }
};

std::vector<mx::array> launch(const Launch& launch, mx::Stream s);

// The launch's only output.
inline mx::array launch_one(const Launch& one, mx::Stream s) {
  return launch(one, s)[0];
}

// Numbers for a kernel, as an input of its own. The same numbers give the same
// array: on CUDA, memory that the host has just written costs page faults or a
// copy. Numbers that change with every step are arrays of two at most, made
// anew: MLX keeps 8 bytes and less where both sides reach them.
mx::array numbers(const std::vector<int>& values);
mx::array numbers(const std::vector<float>& values);
inline mx::array numbers(std::initializer_list<int> values) {
  return numbers(std::vector<int>(values));
}
inline mx::array numbers(std::initializer_list<float> values) {
  return numbers(std::vector<float>(values));
}

// A float as an int constant: as_type<float> of it in the kernel.
inline Constant float_constant(const char* name, float value) {
  return {name, std::bit_cast<int>(value)};
}

// Product of all dimensions but the last.
inline int row_count(const mx::array& x) {
  return x.size() / x.shape(-1);
}

// Launches so far in this process.
long kernel_launches();
// Counts those that launch() does not see.
void count_launches(long more);

// How often a kernel has been run for the first time, which evaluates what it
// is given and what it makes.
long first_launches();

// Whether kernels run on `s`.
bool has_kernels(const mx::Stream& s);

// Whether kernels should take products of many rows on `s`: on CUDA, where one
// of MLX's costs the host three launches of ours. On Metal launches are cheap
// and MLX's products are tuned.
bool has_tiles(const mx::Stream& s);

// Runs kernels where there is no GPU: how they are tested.
class Emulator {
 public:
  virtual ~Emulator() = default;

  // Inputs, the state behind them, are evaluated and dense; outputs are
  // allocated. Throws std::invalid_argument where it refuses the size.
  virtual void run(
      const KernelSource& source,
      const std::vector<Constant>& constants,
      const std::vector<mx::array>& inputs,
      std::vector<mx::array>& outputs,
      const std::array<int, 3>& groups,
      int threads) = 0;

  // Whether it stands for a GPU of which has_tiles() is true.
  virtual bool has_tiles() const = 0;
};

// From now on CPU streams run kernels by `emulator`; none: they do not.
void emulate_kernels(Emulator* emulator);

} // namespace nightingale::gpu
