#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nightingale::gpu {

// NVIDIA's run-time compiler, found at run time: MLX's CUDA backend brings it.
class Nvrtc {
 public:
  struct Code {
    std::string bytes; // for the architecture that the options name
    std::string mangled; // the kernel's name in them
  };

  // None where it is not there.
  static const Nvrtc* find();

  // Of a text with the kernel `name`; nothing if it does not compile.
  std::optional<Code> compile(
      const std::string& text,
      const std::string& name,
      const std::vector<std::string>& options) const;

 private:
  using Program = struct ProgramTag*;
  using Strings = const char* const*;

  bool load(void* library);

  int (*create_)(Program*, const char*, const char*, int, Strings, Strings) =
      nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*name_)(Program, const char*) = nullptr;
  int (*compile_)(Program, int, Strings) = nullptr;
  int (*lowered_)(Program, const char*, const char**) = nullptr;
  int (*size_)(Program, size_t*) = nullptr;
  int (*bytes_)(Program, char*) = nullptr;
};

} // namespace nightingale::gpu
