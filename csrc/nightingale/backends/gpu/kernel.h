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

// Launches the kernels of metal/. Nothing else does.

namespace nightingale::gpu {

struct KernelOutput {
  mx::Shape shape;
  mx::Dtype dtype = mx::float32;
};

// A type or size that a kernel is compiled for.
using Constant = std::pair<std::string, mx::fast::TemplateArg>;

// What the text of a kernel may depend on: the constants that are whole
// numbers, for FLOAT32 and BFLOAT16 whether a constant or an array is of that
// type, and for HALF_ARRAYS whether an array has floats of 16 bits.
KernelNumbers numbers_of(
    const std::vector<Constant>& constants,
    const std::vector<mx::Dtype>& arrays);

struct Launch {
  const char* kernel;
  // Row-major where there is state; of one dimension at least.
  std::vector<mx::array> inputs;
  // Written in place. Later readers of this memory must take the launch's first
  // output, or a result of it, as an input: only that orders the two.
  std::vector<mx::array> state = {};
  std::vector<KernelOutput> outputs;
  std::vector<Constant> constants = {};
  std::vector<std::string> absent = {}; // inputs and outputs that are left out
  std::array<int, 3> groups{1, 1, 1}; // of THREADS threads each
  // Possible group sizes, the best first: the first that the GPU accepts is
  // used. All give the same result, but for the order of sums. The kernel sees
  // the size as THREADS.
  std::vector<int> threads;

  // Whether only the best size will do, because the result must have the bits
  // of a launch with less work for each thread: a GPU that accepts the size
  // here accepts it there. The caller has another way where it is refused.
  bool best_size_only = false;

  // Adds the input `name`, the next in the kernel's list, or leaves it out.
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

// Numbers as an input of a kernel. Equal numbers give the same array: on CUDA,
// memory that the host has just written costs page faults or a copy. Numbers
// that change with every step should be new arrays of at most two elements: MLX
// keeps up to 8 bytes in memory that both sides access directly.
mx::array numbers(const std::vector<int>& values);
mx::array numbers(const std::vector<float>& values);
inline mx::array numbers(std::initializer_list<int> values) {
  return numbers(std::vector<int>(values));
}
inline mx::array numbers(std::initializer_list<float> values) {
  return numbers(std::vector<float>(values));
}

// A float as an int constant, which the kernel reads with as_type<float>.
inline Constant float_constant(const char* name, float value) {
  return {name, std::bit_cast<int>(value)};
}

// Product of all dimensions but the last.
inline int row_count(const mx::array& x) {
  return x.size() / x.shape(-1);
}

// MLX passes smaller arrays to Metal as `constant` memory, which cannot be
// written and which helpers in kernels do not take.
constexpr int kLeastDeviceSize = 8;

// Whether Metal gets the array as `device` memory.
inline bool is_device_array(const mx::array& x) {
  return x.size() >= kLeastDeviceSize;
}

// What this process has launched so far.
struct LaunchCount {
  long launches = 0;
  // Of kernel text that MLX got for them, without the signatures that it adds:
  // it hashes the text of every launch.
  long source_bytes = 0;
};

LaunchCount launch_count();
// Adds launches that did not go through launch().
void count_launches(LaunchCount more);

inline long kernel_launches() {
  return launch_count().launches;
}

// How many kernels have been run for the first time, which evaluates their
// inputs and outputs at once.
long first_launches();

// Whether kernels run on `s`.
bool has_kernels(const mx::Stream& s);

// Whether kernels should compute products of many rows on `s`: on CUDA, where
// one of MLX's products costs the host as much as three launches of ours. On
// Metal launches are cheap and MLX's products are tuned.
bool has_tiles(const mx::Stream& s);

} // namespace nightingale::gpu
