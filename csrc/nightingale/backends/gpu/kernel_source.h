#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nightingale::gpu {

// A kernel of metal/, taken apart.
struct KernelSource {
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> state; // inputs that are written in place
  std::vector<std::string> outputs;
  std::string header; // what stands before the kernel's body
  std::string body;
  std::vector<std::string> absent; // names that without() took away
};

// The text of a file of metal/, for #include.
using FindText = std::string_view (*)(std::string_view name);

// Takes a kernel's text apart: its lists of names, its includes resolved, its
// comments and indentation gone, because MLX hashes the text at every launch.
KernelSource
parse_kernel(std::string_view name, std::string_view text, FindText find);

// `source` for launches that lack some of its inputs and outputs: there these
// names stand for the first that is left, and the kernel does not look at them.
KernelSource without(
    KernelSource source,
    const std::vector<std::string>& absent);

// A file of metal/ as it was when the library was built, or nothing.
std::string_view embedded_text(std::string_view name);

// All kernels of metal/, in the order of their names.
const std::vector<KernelSource>& kernel_sources();

const KernelSource& kernel_source(std::string_view name);

} // namespace nightingale::gpu
