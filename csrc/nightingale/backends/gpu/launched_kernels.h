#pragma once

#include <string>
#include <vector>

namespace nightingale::gpu {

// The kernels that have been run, each once, in the order of its first run.
std::vector<std::string> launched_kernels();

} // namespace nightingale::gpu
