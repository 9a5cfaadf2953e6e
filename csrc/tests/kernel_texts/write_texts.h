#pragma once

#include <filesystem>

#include "nightingale/backends/testing.h"

namespace nightingale::testing {

// Writes the text of every kernel instance that the models launch on Metal to a
// file NAME.metal in `folder`, and of those that only tests launch there to its
// subfolder `tiles`.
void write_kernel_texts(const std::filesystem::path& folder);

// Writes the text of one instance to a file NAME.metal in `folder`, if it is of
// a kernel of metal/.
void write_kernel_text(
    const std::filesystem::path& folder,
    const test_hooks::KernelRun& run);

} // namespace nightingale::testing
