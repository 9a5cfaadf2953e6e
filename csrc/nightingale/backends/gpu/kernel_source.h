#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nightingale::gpu {

// The parts of a kernel of metal/.
struct KernelSource {
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> state; // inputs that are written in place
  std::vector<std::string> outputs;
  // The inputs and state `name[count]`: name, name1 and so on.
  std::vector<std::pair<std::string, int>> lists;
  std::string header; // the text before the kernel's body
  std::string body;
  std::vector<std::string> absent; // names removed by without()
};

// The text of a file of metal/, for #include.
using FindText = std::string_view (*)(std::string_view name);

// Parses a kernel's text. Includes are resolved; comments and indentation are
// removed, because MLX hashes the text at every launch.
KernelSource
parse_kernel(std::string_view name, std::string_view text, FindText find);

// `source` for launches without some of its inputs and outputs: these names
// become aliases of the first that is left, and the kernel must not read them.
KernelSource without(
    KernelSource source,
    const std::vector<std::string>& absent);

// The whole numbers that a kernel is compiled for, by name.
using KernelNumbers = std::vector<std::pair<std::string, int>>;

// `source` for launches with these numbers: the first LISTED of every list, or
// one, and of what is between #if, #else and #endif only what applies is left.
// Conditions are `NAME`, `!NAME` or `NAME`, one of < > == and a number.
KernelSource specialized(KernelSource source, const KernelNumbers& numbers);

// A file of metal/ as the part of a kernel that stands before its header.
std::string embedded_header(std::string_view name);

// A file of metal/ as embedded when the library was built, or nothing.
std::string_view embedded_text(std::string_view name);

// All kernels of metal/, in the order of their names.
const std::vector<KernelSource>& kernel_sources();

const KernelSource& kernel_source(std::string_view name);

} // namespace nightingale::gpu
