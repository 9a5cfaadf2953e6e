#pragma once

#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/metal_text.h"

// The MLX primitives that run launches.

namespace nightingale::gpu {

using Arrays = std::vector<mx::array>;

// A hash of what is launched. Computed at every launch, so without building
// strings.
class Fingerprint {
 public:
  void add(uint64_t value) {
    hash_ = (hash_ ^ value) * 1099511628211ull; // FNV-1a
  }
  void add(const char* text) {
    for (; *text; ++text) {
      add(static_cast<uint64_t>(*text));
    }
    add(uint64_t(256));
  }
  void add(mx::Dtype type) {
    add(static_cast<uint64_t>(type.val()));
  }
  void add(const mx::fast::TemplateArg& value) {
    if (auto type = std::get_if<mx::Dtype>(&value)) {
      add(*type);
    } else if (auto number = std::get_if<int>(&value)) {
      add(static_cast<uint64_t>(*number));
    } else {
      add(static_cast<uint64_t>(std::get<bool>(value)));
    }
  }
  uint64_t value() const {
    return hash_;
  }

 private:
  uint64_t hash_ = 14695981039346656037ull;
};

// The kernel's text for these inputs, outputs and constants.
KernelSource source_of(const Launch& launch);

// Of the text that MLX gets for it; in the emulator, that it would on Metal.
long source_bytes_of(const Launch& launch);

// The kernel and what it is compiled for, which decides its text and which
// group sizes are accepted: which of its inputs and outputs are left out,
// constants, types and whether Metal has an input in `constant` memory.
inline Fingerprint instance_of(const Launch& launch) {
  Fingerprint instance;
  instance.add(launch.kernel);
  for (const auto& name : launch.absent) {
    instance.add(name.c_str());
  }
  for (const auto& constant : launch.constants) {
    instance.add(constant.second);
  }
  for (const auto& x : launch.inputs) {
    instance.add(x.dtype());
    instance.add(static_cast<uint64_t>(is_device_array(x)));
  }
  for (const auto& x : launch.state) {
    instance.add(x.dtype());
  }
  for (const auto& out : launch.outputs) {
    instance.add(out.dtype);
  }
  return instance;
}

// A launch with groups of `threads` threads. inputs: the state behind the
// launch's inputs
struct SizedLaunch {
  uint64_t instance; // instance_of(launch)
  const Launch& launch;
  const Arrays& inputs;
  int threads;
  mx::Stream stream;
};

// Launches that differ only in their arrays share a primitive: MLX builds the
// text of the kernel for each that it makes.
Arrays outputs_of(const SizedLaunch& sized);

bool is_launch(const mx::Primitive& primitive);

// On CUDA, puts the machine code of the launch where MLX looks for it.
void provide_code(const SizedLaunch& sized);

// Removes it, as it may be damaged: MLX then compiles the kernel itself. False
// if there was none.
bool remove_code(const SizedLaunch& sized);

std::vector<Constant> constants_with(const Launch& launch, int threads);

// The function that runs a kernel on Metal. It takes the state behind the
// inputs. text: what metal_text() gives.
mx::fast::CustomKernelFunction metal_kernel(
    const KernelSource& source,
    const KernelText& text);

void forget_primitives();
// And the group sizes that were accepted.
void forget_launches();

// Of the GPU that MLX runs on; zeros without CUDA.
struct ComputeCapability {
  size_t major = 0, minor = 0;
};

ComputeCapability compute_capability();

} // namespace nightingale::gpu
