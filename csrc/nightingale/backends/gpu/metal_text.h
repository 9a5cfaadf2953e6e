#pragma once

#include <string>
#include <string_view>

#include "nightingale/backends/gpu/kernel_source.h"

// The text of a kernel as MLX gets it on Metal, where it hashes all of it at
// every launch, 0.5 µs for each kB, and cannot take it from a file: so the text
// has only what the kernel uses.

namespace nightingale::gpu {

// As MLX takes it.
struct KernelText {
  std::string header, body;
};

// source: specialized for the launch
KernelText metal_text(const KernelSource& source);

// `header` without the functions, structs and types that neither `body` uses
// nor anything that it does use.
std::string without_unused(std::string_view header, std::string_view body);

// The same code without spaces that do not separate words or operators. Lines
// stay lines, for the compiler's messages, but those of closing braces.
std::string without_spaces(std::string_view text);

// The same code with macros in place of the phrases that kernels repeat most,
// such as `const device`, where that is shorter.
KernelText with_short_phrases(KernelText text);

// Declares the writable pointers to the state; see state_input().
std::string writable_state(const KernelSource& source);

// MLX gives kernels const inputs: state is passed under another name, and its
// own name is a writable pointer to it.
inline std::string state_input(const std::string& state) {
  return state + "_const";
}

} // namespace nightingale::gpu
