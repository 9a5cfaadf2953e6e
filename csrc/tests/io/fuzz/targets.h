#pragma once

#include <string>
#include <string_view>
#include <vector>

// Readers of files that others wrote, given any bytes. Each reads all that a
// file holds or throws an Error; whatever else happens is a fault. libFuzzer
// calls them (libfuzzer_main.cpp), and fuzz_test.cpp with a few inputs.

namespace nightingale::testing {

struct FuzzTarget {
  std::string_view name;
  std::vector<std::string> (*seeds)(); // whole files to begin with
  // Whether the bytes are a file that can be read.
  bool (*accepts)(std::string_view bytes);
};

// "safetensors", "settings" (nightingale.json) and "voice".
const std::vector<FuzzTarget>& fuzz_targets();
const FuzzTarget& fuzz_target(std::string_view name);

} // namespace nightingale::testing
