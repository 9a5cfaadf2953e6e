// libFuzzer's entry points for one target, FUZZ_TARGET. Before the run the
// target's seeds are put in the folder that the command line names:
//     fuzz_settings FOLDER -max_total_time=60

#include <cstdint>
#include <fstream>

#include "io/fuzz/targets.h"

using nightingale::testing::fuzz_target;

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  int number = 0;
  std::string folder = *argc > 1 ? (*argv)[1] : "-";
  if (folder.starts_with("-")) {
    return 0;
  }
  for (const auto& seed : fuzz_target(FUZZ_TARGET).seeds()) {
    std::string path = folder + "/seed-" + std::to_string(number++);
    std::ofstream(path, std::ios::binary) << seed;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_target(FUZZ_TARGET).accepts({reinterpret_cast<const char*>(data), size});
  return 0;
}
