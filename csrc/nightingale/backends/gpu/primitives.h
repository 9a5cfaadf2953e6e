#pragma once

#include "nightingale/backends/gpu/kernel.h"

// What runs launches when they are evaluated.

namespace nightingale::gpu {

using Arrays = std::vector<mx::array>;

// The outputs of a launch that is `instance_of` it, of groups of so many
// threads. Launches that differ in nothing but their arrays share what MLX
// makes of one: it puts the text of a kernel together for each that it makes.
Arrays outputs_of(
    uint64_t instance,
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s);

// Whether it runs a launch.
bool is_launch(const mx::Primitive& primitive);

// On CUDA, has the machine code of the launch where MLX looks for it.
void provide_code(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s);

// Takes it away again, damaged as it may be: MLX then compiles for itself.
// False where there was none.
bool withdraw_code(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s);

// Of the GPU that MLX runs on; zeros without CUDA.
struct ComputeCapability {
  size_t major = 0, minor = 0;
};

ComputeCapability compute_capability();

// As gpu::emulate_kernels, and what it is now.
void set_emulator(Emulator* emulator);
Emulator* current_emulator();

} // namespace nightingale::gpu
